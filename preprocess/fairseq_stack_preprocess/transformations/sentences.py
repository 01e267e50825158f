"""The words of McCoy, Frank & Linzen (2020), and sentences drawn from them.

The authors' two grammars have one skeleton, and differ only in finite verbs: an auxiliary and a verb (does giggle) in
questions, a verb in the present (giggles) in tenses. A phrase has at most one modifier, and there is no recursion. All
words of a class are equally likely; so are both numbers of a noun phrase.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from ..text.splits import pick, pick_index
from .class_weights import (
    INTRANSITIVE,
    INTRANSITIVE_RELATIVE,
    PREPOSITIONAL,
    SIMPLE,
    TRANSITIVE_RELATIVE,
    ClassWeights,
)

Words = tuple[str, ...]

SINGULAR, PLURAL = NUMBERS = (0, 1)

DETERMINERS = ("the", "some", "my", "your", "our", "her")
PREPOSITIONS = ("around", "near", "with", "upon", "by", "behind", "above", "below")
PRONOUNS = ("who", "that")
_SINGULARS = (
    *("newt", "orangutan", "peacock", "quail", "raven", "salamander", "tyrannosaurus", "unicorn", "vulture"),
    *("walrus", "xylophone", "yak", "zebra"),
)
NOUNS = (_SINGULARS, tuple(f"{noun}es" if noun.endswith("s") else f"{noun}s" for noun in _SINGULARS))
"""The nouns of each number."""

INTRANSITIVE_VERBS = ("giggle", "smile", "sleep", "swim", "wait", "move", "change", "read", "eat")
TRANSITIVE_VERBS = ("entertain", "amuse", "high_five", "applaud", "confuse", "admire", "accept", "remember", "comfort")
VERBS = (*INTRANSITIVE_VERBS, *TRANSITIVE_VERBS)
AUXILIARIES = (("does", "doesn't"), ("do", "don't"))
"""The auxiliaries of each number: without and with negation."""

FiniteVerb = Callable[[random.Random, Sequence[str], int], Words]
"""Draws one of some verbs in the form that a subject of a number asks for."""


@dataclass(frozen=True)
class Sentence:
    """A sentence without its full stop.

    Attributes:
        subject: its words.
        verb_phrase: its words; a finite verb comes first.
        structure: the type of the subject and that of the verb phrase.
    """

    subject: Words
    verb_phrase: Words
    structure: tuple[str, str]


def draw_sentence(rng: random.Random, weights: ClassWeights, finite: FiniteVerb) -> Sentence:
    """A sentence whose types have these weights."""
    subject, verb_phrase = draw_type(rng, weights.subjects), draw_type(rng, weights.verb_phrases)
    number = pick(rng, NUMBERS)
    subject_words = _noun_phrase(rng, subject, number, finite)
    if verb_phrase == INTRANSITIVE:
        words = finite(rng, INTRANSITIVE_VERBS, number)
    else:
        words = finite(rng, TRANSITIVE_VERBS, number) + _noun_phrase(rng, verb_phrase, pick(rng, NUMBERS), finite)
    return Sentence(subject_words, words, (subject, verb_phrase))


def draw_type(rng: random.Random, weights: Mapping[str, float]) -> str:
    """One of the names by their weights, of which one at least is positive."""
    names = [name for name, weight in weights.items() if weight > 0]
    return names[pick_index(rng, list(accumulate(weights[name] for name in names)))]


def _noun_phrase(rng: random.Random, kind: str, number: int, finite: FiniteVerb) -> Words:
    head = _simple(rng, number)
    if kind == SIMPLE:
        return head
    if kind == PREPOSITIONAL:
        return (*head, pick(rng, PREPOSITIONS), *_simple(rng, pick(rng, NUMBERS)))
    return (*head, pick(rng, PRONOUNS), *_relative_clause(rng, kind, number, finite))


def _simple(rng: random.Random, number: int) -> Words:
    return pick(rng, DETERMINERS), pick(rng, NOUNS[number])


def _relative_clause(rng: random.Random, kind: str, number: int, finite: FiniteVerb) -> Words:
    """A relative clause on a noun of a number, without its pronoun."""
    if kind == INTRANSITIVE_RELATIVE:
        return finite(rng, INTRANSITIVE_VERBS, number)
    other = pick(rng, NUMBERS)
    if kind == TRANSITIVE_RELATIVE:
        return finite(rng, TRANSITIVE_VERBS, number) + _simple(rng, other)
    return _simple(rng, other) + finite(rng, TRANSITIVE_VERBS, other)
