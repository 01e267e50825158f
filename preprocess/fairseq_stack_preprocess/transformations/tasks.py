"""The two tasks: what a pair is by the hierarchical rule, and what the linear rule would answer.

- ``question-formation``: ``quest`` fronts the auxiliary of the main clause; the linear rule fronts the first one
  (move-first). ``decl`` asks for the sentence itself.
- ``tense-reinflection``: ``PRESENT`` makes every verb agree with its own subject; by the linear rule it agrees with the
  most recent noun (agree-recent). ``PAST`` asks for the sentence itself.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..text.splits import pick
from .class_weights import (
    INTRANSITIVE,
    INTRANSITIVE_RELATIVE,
    OBJECT_RELATIVE,
    PREPOSITIONAL,
    PUBLISHED,
    RELEASED_QUESTIONS,
    RELEASED_TENSES,
    SIMPLE,
    TRANSITIVE_RELATIVE,
    VERB_PHRASES,
    ClassWeights,
)
from .sentences import (
    AUXILIARIES,
    DETERMINERS,
    NOUNS,
    NUMBERS,
    PREPOSITIONS,
    PRONOUNS,
    SINGULAR,
    VERBS,
    FiniteVerb,
    Sentence,
    Words,
)

PAST_FORMS = (
    *("giggled", "smiled", "slept", "swam", "waited", "moved", "changed", "read", "ate"),
    *("entertained", "amused", "high_fived", "applauded", "confused", "admired", "accepted", "remembered", "comforted"),
)
"""The past of each of :data:`.VERBS`."""


@dataclass(frozen=True)
class Pair:
    """A pair.

    Attributes:
        source: a sentence, and the marker.
        target: the answer of the hierarchical rule.
        linear: that of the linear rule.
        structure: the types of the subject and of the verb phrase.
    """

    source: Words
    target: Words
    linear: Words
    structure: tuple[str, str]


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: on the command line.
        markers: the one that asks for the sentence itself, and the one that asks for the transformation.
        words: all other words.
        finite: draws a finite verb.
        source: the words of a sentence as it is given.
        hierarchical: its transformation.
        linear: what the linear rule makes of the words of the source.
        decides: whether a target and the linear rule's answer differ as they must in the generalisation set, ``gen``.
        released: the class weights of the authors' training, validation and test sets.
        released_gen: those of their generalisation set.
        gen_subjects: the types of subjects in ``gen``: the first pair has one of the first group, the second pair one
            of the second group, and so on, from the beginning again after the last group.
        gen_verb_phrases: the types of verb phrases in ``gen``.
    """

    name: str
    markers: tuple[str, str]
    words: Sequence[str]
    finite: FiniteVerb
    source: Callable[[Sentence], Words]
    hierarchical: Callable[[Sentence], Words]
    linear: Callable[[Words], Words]
    decides: Callable[[Words, Words], bool]
    released: ClassWeights
    released_gen: ClassWeights
    gen_subjects: Sequence[tuple[str, ...]]
    gen_verb_phrases: Collection[str]

    @property
    def vocabulary(self) -> Sequence[str]:
        """All words, the markers last."""
        return [*self.words, *self.markers]

    def pair(self, sentence: Sentence, *, transforms: bool) -> Pair:
        """The pair of a sentence, with the marker of the transformation or with the other one."""
        words = self.source(sentence)
        source = (*words, self.markers[transforms])
        if not transforms:
            return Pair(source, words, words, sentence.structure)
        return Pair(source, self.hierarchical(sentence), self.linear(words), sentence.structure)


def _unchanged(sentence: Sentence) -> Words:
    return (*sentence.subject, *sentence.verb_phrase, ".")


def _auxiliary_and_verb(rng: random.Random, verbs: Sequence[str], number: int) -> Words:
    return pick(rng, AUXILIARIES[number]), pick(rng, verbs)


def _move_main(sentence: Sentence) -> Words:
    auxiliary, *rest = sentence.verb_phrase
    return (auxiliary, *sentence.subject, *rest, "?")


def _move_first(words: Words) -> Words:
    first = next(place for place, word in enumerate(words) if word in AUXILIARIES[0] + AUXILIARIES[1])
    return (words[first], *words[:first], *words[first + 1 : -1], "?")


def _first_words_decide(target: Words, linear: Words) -> bool:
    """Whether the fronted auxiliaries are of the same number, and one of them is negated."""
    return {target[0], linear[0]} in map(set, AUXILIARIES)


def present(verb: str, number: int) -> str:
    """The present of a verb."""
    return f"{verb}s" if number == SINGULAR else verb


_PAST_OF = {present(verb, number): past for verb, past in zip(VERBS, PAST_FORMS, strict=True) for number in NUMBERS}
_VERB_OF = dict(zip(PAST_FORMS, VERBS, strict=True))
_NUMBER_OF = {noun: number for number in NUMBERS for noun in NOUNS[number]}


def _present_verb(rng: random.Random, verbs: Sequence[str], number: int) -> Words:
    return (present(pick(rng, verbs), number),)


def _in_the_past(sentence: Sentence) -> Words:
    return tuple(_PAST_OF.get(word, word) for word in _unchanged(sentence))


def _agree_recent(words: Words) -> Words:
    changed, number = [], SINGULAR
    for word in words:
        number = _NUMBER_OF.get(word, number)
        changed.append(present(_VERB_OF[word], number) if word in _VERB_OF else word)
    return tuple(changed)


_SHARED_WORDS = (*DETERMINERS, *PREPOSITIONS, *PRONOUNS, *NOUNS[0], *NOUNS[1])

QUESTION_FORMATION = Task(
    name="question-formation",
    markers=("decl", "quest"),
    words=(*_SHARED_WORDS, *VERBS, *AUXILIARIES[0], *AUXILIARIES[1], ".", "?"),
    finite=_auxiliary_and_verb,
    source=_unchanged,
    hierarchical=_move_main,
    linear=_move_first,
    decides=_first_words_decide,
    released=RELEASED_QUESTIONS,
    released_gen=PUBLISHED,
    # The authors' set has 3,333 object relatives and 6,667 subject relatives.
    gen_subjects=(*2 * ((TRANSITIVE_RELATIVE, INTRANSITIVE_RELATIVE),), (OBJECT_RELATIVE,)),
    gen_verb_phrases=(INTRANSITIVE, SIMPLE, PREPOSITIONAL),
)

TENSE_REINFLECTION = Task(
    name="tense-reinflection",
    markers=("PAST", "PRESENT"),
    words=tuple(dict.fromkeys((*_SHARED_WORDS, *_PAST_OF, *PAST_FORMS, "."))),
    finite=_present_verb,
    source=_in_the_past,
    hierarchical=_unchanged,
    linear=_agree_recent,
    decides=operator.ne,
    released=RELEASED_TENSES,
    released_gen=RELEASED_TENSES,
    gen_subjects=((PREPOSITIONAL, OBJECT_RELATIVE, TRANSITIVE_RELATIVE),),
    gen_verb_phrases=VERB_PHRASES,
)

TASKS = {task.name: task for task in (QUESTION_FORMATION, TENSE_REINFLECTION)}
