"""Question formation and tense reinflection: pairs, and the result of ``fairseq-stack evaluate-transformations``.

Names in brackets are those of the papers: McCoy, Frank & Linzen (2020) and DuSell & Cotterell (2025).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_columns, reading_as
from fairseq_stack_preprocess.layout import MANIFEST_NAME, TEXT
from fairseq_stack_preprocess.transformations.class_weights import (
    INTRANSITIVE_RELATIVE,
    NOUN_PHRASES,
    PREPOSITIONAL,
    SIMPLE,
    TRANSITIVE_RELATIVE,
)
from fairseq_stack_preprocess.transformations.sentences import AUXILIARIES, NUMBERS, VERBS, Words
from fairseq_stack_preprocess.transformations.tasks import (
    QUESTION_FORMATION,
    TASKS,
    TENSE_REINFLECTION,
    Pair,
    Task,
    present,
)
from fairseq_stack_preprocess.transformations.transformation_corpus import CORPUS, LINEAR, SOURCE, STRUCTURE, TARGET

from .intervals import Intervals
from .manifest import corpus_at, read_manifest
from .markdown import MISSING, table
from .results import Estimate, Result, Row

AUXILIARY_AFTER_PRONOUN = (TRANSITIVE_RELATIVE, INTRANSITIVE_RELATIVE)
"""The types of subjects in which a relative pronoun is right before the auxiliary of its clause."""


_ALL_AUXILIARIES = AUXILIARIES[0] + AUXILIARIES[1]
_FORMS = [tuple(present(verb, number) for number in NUMBERS) for verb in VERBS]
_RIVALS: dict[str, dict[str, Words]] = {
    QUESTION_FORMATION.name: dict.fromkeys(_ALL_AUXILIARIES, _ALL_AUXILIARIES),
    TENSE_REINFLECTION.name: {form: forms for forms in _FORMS for form in forms},
}
"""For each task the words that can be deciding ones, and those that compete with each."""


@dataclass(frozen=True)
class DecidingWord:
    """The word of a target that tells the rules apart: the first word of a question, the main verb in the present.

    Attributes:
        place: its place in the target, from 0.
        rivals: the words that compete for this place, the right one among them: the four auxiliaries, or the singular
            and the plural of the verb.
    """

    place: int
    rivals: Words


@dataclass(frozen=True)
class TransformationPairs:
    """A split of a corpus.

    Attributes:
        task: the task.
        pairs: the pairs, at least one.
        deciding_words: that of each pair; None where the marker asks for the sentence itself.
        dictionaries: the folder of the dictionaries; None if the corpus was not binarised.
    """

    task: Task
    pairs: Sequence[Pair]
    deciding_words: Sequence[DecidingWord | None]
    dictionaries: Path | None


def read_transformations(folder: Path, split: str) -> TransformationPairs:
    """Read a split of a corpus.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.
        split: its name.

    Raises:
        UserError: the folder holds no such corpus, or the corpus has no such split.
    """
    root, dictionaries = corpus_at(folder)
    manifest = read_manifest(root)
    if manifest.get("corpus") != CORPUS:
        raise UserError(
            f"{folder} is not a corpus of fairseq-stack prepare {CORPUS}: expected {MANIFEST_NAME} of such a corpus"
        )
    with reading_as(f"a manifest of fairseq-stack prepare {CORPUS}", root / MANIFEST_NAME):
        task = TASKS[manifest["options"]["task"]]
    read = list(_read_pairs(root / TEXT, split, task))
    if not read:
        raise UserError(f"{folder}: the split {split} is empty")
    pairs, words = zip(*read, strict=True)
    return TransformationPairs(task, pairs, words, dictionaries)


def _read_pairs(folder: Path, split: str, task: Task) -> Iterator[tuple[Pair, DecidingWord | None]]:
    paths = [folder / f"{split}.{name}" for name in (SOURCE, TARGET, LINEAR, STRUCTURE)]
    if not paths[0].is_file():
        known = sorted(path.stem for path in folder.glob(f"*.{SOURCE}"))
        raise UserError(f"{folder.parent} has no split {split!r}; it has {', '.join(known) or 'none'}")
    columns = ([tuple(line.split()) for line in lines] for lines in read_columns(*paths))
    for number, (source, target, linear, structure) in enumerate(zip(*columns, strict=True), start=1):
        try:
            subject, verb_phrase = structure
            pair = Pair(source, target, linear, (subject, verb_phrase))
            word = deciding_word(task, pair)
        except (IndexError, ValueError) as error:
            expected = f"a pair of {task.name}, as fairseq-stack prepare {CORPUS} writes it"
            raise UserError(f"{folder / split}.*, line {number}: expected {expected}") from error
        yield pair, word


def deciding_word(task: Task, pair: Pair) -> DecidingWord | None:
    """The deciding word of a pair; None if its marker asks for the sentence itself."""
    if pair.source[-1] != task.markers[1]:
        return None
    rivals = _RIVALS[task.name]
    places = [place for place, word in enumerate(pair.target) if word in rivals]
    # The verb of a relative clause on the subject comes before the main verb, but the main auxiliary is fronted.
    after_clause = task is TENSE_REINFLECTION and pair.structure[0] not in (SIMPLE, PREPOSITIONAL)
    place = places[after_clause]
    return DecidingWord(place, rivals[pair.target[place]])


@dataclass(frozen=True)
class AnswerScore:
    """What a model says about an answer of n words.

    Attributes:
        log_probabilities: (n + 1,), of the words and the end, each after those before it, in nats.
        is_best: (n + 1,), whether the model finds none more probable, padding left out. If all are the best, a greedy
            search writes the answer.
        rivals: the log-probabilities of the rivals of a deciding word.
    """

    log_probabilities: Sequence[float]
    is_best: Sequence[bool]
    rivals: Sequence[float]


@dataclass(frozen=True)
class ScoredPair:
    """What a model says about a pair, its end included.

    Attributes:
        pair: the pair.
        nats: -log p(target | source).
        nats_linear: -log p(the linear rule's answer | source).
        full_sentence: whether a greedy search writes the target.
        linear_answer: whether a greedy search writes the linear rule's answer.
        deciding_word: whether the deciding word is the most probable one after the words of the target before it; None
            if there is no deciding word (likewise the next two).
        restricted: whether it is the most probable one of its rivals.
        probability: its probability there.
    """

    pair: Pair
    nats: float
    nats_linear: float
    full_sentence: bool
    linear_answer: bool
    deciding_word: bool | None
    restricted: bool | None
    probability: float | None

    @property
    def differs(self) -> bool:
        """Whether the rules give different answers."""
        return self.pair.target != self.pair.linear

    @property
    def log_ratio(self) -> float:
        """log p(target | source) - log p(the linear rule's answer | source)."""
        return self.nats_linear - self.nats

    def row(self) -> Row:
        """The pair and its scores, for a CSV file."""
        scores = {name: value for name, value in vars(self).items() if name != "pair"}
        return {**{name: " ".join(words) for name, words in vars(self.pair).items()}, **scores}


def scored_pair(pair: Pair, word: DecidingWord | None, right: AnswerScore, linear: AnswerScore) -> ScoredPair:
    """The scores of a pair from what a model says about its target and the linear rule's answer."""
    deciding_word = restricted = probability = None
    if word is not None:
        deciding_word = right.is_best[word.place]
        restricted = max(zip(right.rivals, word.rivals, strict=True))[1] == pair.target[word.place]
        probability = math.exp(right.log_probabilities[word.place])
    return ScoredPair(
        pair=pair,
        nats=-math.fsum(right.log_probabilities),
        nats_linear=-math.fsum(linear.log_probabilities),
        full_sentence=all(right.is_best),
        linear_answer=all(linear.is_best),
        deciding_word=deciding_word,
        restricted=restricted,
        probability=probability,
    )


@dataclass(frozen=True)
class TransformationScores:
    """A model's scores on some pairs, each with its bootstrap interval over pairs.

    Attributes:
        subject: the type of their subjects; ``all`` for all pairs.
        pairs: number of pairs.
        transformed: number of those with the marker of the transformation, which have a deciding word: the first word
            of a question, the main verb in the present.
        differing: number of those on which the rules differ.
        full_sentence: share of pairs of which a greedy search writes the target (full-sentence accuracy).
        linear_answer: share of pairs of which it writes the linear rule's answer (greedy match of y').
        deciding_word: share of transformed pairs of which the deciding word is the most probable one after the target's
            words before it (first-word accuracy; main-verb accuracy, by teacher forcing); None if there are no such
            pairs (likewise the next two).
        restricted: the same among the four auxiliaries (test_aux), or the two forms of the main verb.
        probability: mean probability of the deciding word there (FA of questions).
        conditional_probability: mean p(target | source) over pairs (CP).
        cross_entropy: -log p(target | source) in nats per token of the targets, ends included (CCE).
        log_ratio: mean of log p(target | source) - log p(linear rule's answer | source) over differing pairs, in nats
            (LR); None if there are none (likewise the next).
        prefers_target: share of differing pairs with a log ratio greater than 0.
    """

    subject: str
    pairs: int
    transformed: int
    differing: int
    full_sentence: Estimate
    linear_answer: Estimate
    deciding_word: Estimate | None
    restricted: Estimate | None
    probability: Estimate | None
    conditional_probability: Estimate
    cross_entropy: Estimate
    log_ratio: Estimate | None
    prefers_target: Estimate | None

    def cells(self) -> list[tuple[str, str]]:
        """The columns of the table: a value and its interval for each row."""
        shares = (self.full_sentence, self.linear_answer, self.deciding_word, self.restricted)
        means = (self.probability, self.conditional_probability, self.cross_entropy, self.log_ratio)
        return [
            *((f"{number:,}", "") for number in (self.pairs, self.transformed, self.differing)),
            *(_MISSING if share is None else share.percent(2) for share in shares),
            *(_MISSING if mean is None else mean.cells(4) for mean in means),
            _MISSING if self.prefers_target is None else self.prefers_target.percent(2),
        ]


_MISSING = (MISSING, MISSING)


@dataclass(frozen=True)
class TransformationResult(Result):
    """A model on a split of a corpus of transformations.

    Attributes:
        task: the task.
        split: the part of the corpus.
        overall: the scores on all pairs.
        by_subject: the scores for each type of subject, in the order of :data:`.NOUN_PHRASES`.
    """

    kind: ClassVar[str] = "evaluate-transformations"
    task: str
    split: str
    overall: TransformationScores
    by_subject: tuple[TransformationScores, ...]

    def lines(self) -> list[str]:
        word = "first word" if self.task == QUESTION_FORMATION.name else "main verb"
        names = (
            *("pairs", "transformed", "differing", "full sentence", "linear answer"),
            *(word, f"{word}, restricted", f"probability of {word}"),
            *("probability of target", "nats per token", "log ratio", "log ratio > 0"),
        )
        columns = [scores.cells() for scores in self.by_subject]
        rows = [
            [name, *of_all, *(value for value, _ in of_subjects)]
            for name, of_all, *of_subjects in zip(names, self.overall.cells(), *columns, strict=True)
        ]
        head = ("", "all", "interval", *(scores.subject for scores in self.by_subject))
        return [self.model.on(f"{self.task}, {self.split}"), "", table(head, rows), *self._notes()]

    def _notes(self) -> list[str]:
        """What a rule without hierarchy scores on pairs on which the first auxiliary is not the main one."""
        if self.task != QUESTION_FORMATION.name or self.overall.differing < self.overall.pairs:
            return []
        share = sum(x.pairs for x in self.by_subject if x.subject in AUXILIARY_AFTER_PRONOUN) / self.overall.pairs
        return [
            "",
            "To front the first auxiliary that does not follow a relative pronoun is right for "
            f"{' and '.join(AUXILIARY_AFTER_PRONOUN)} alone: {share:.2%} of the first words.",
        ]


def transformation_scores(
    pairs: Sequence[ScoredPair], intervals: Intervals
) -> tuple[TransformationScores, tuple[TransformationScores, ...]]:
    """The scores on all pairs, and for each type of subject that they have."""
    streams = itertools.count()
    overall = _scores("all", pairs, intervals, streams)
    groups = {name: [scored for scored in pairs if scored.pair.structure[0] == name] for name in NOUN_PHRASES}
    return overall, tuple(_scores(name, group, intervals, streams) for name, group in groups.items() if group)


def _scores(
    subject: str, pairs: Sequence[ScoredPair], intervals: Intervals, streams: Iterator[int]
) -> TransformationScores:
    transformed = [scored for scored in pairs if scored.deciding_word is not None]
    differing = [scored for scored in pairs if scored.differs]

    def mean(score: Callable[[ScoredPair], Any], of: Sequence[ScoredPair]) -> Estimate:
        return intervals.of_rate(list(map(score, of)), [1] * len(of), next(streams))

    return TransformationScores(
        subject=subject,
        pairs=len(pairs),
        transformed=len(transformed),
        differing=len(differing),
        full_sentence=mean(lambda scored: scored.full_sentence, pairs),
        linear_answer=mean(lambda scored: scored.linear_answer, pairs),
        deciding_word=mean(lambda scored: scored.deciding_word, transformed) if transformed else None,
        restricted=mean(lambda scored: scored.restricted, transformed) if transformed else None,
        probability=mean(lambda scored: scored.probability, transformed) if transformed else None,
        conditional_probability=mean(lambda scored: math.exp(-scored.nats), pairs),
        cross_entropy=intervals.of_rate(
            [scored.nats for scored in pairs], [len(scored.pair.target) + 1 for scored in pairs], next(streams)
        ),
        log_ratio=mean(lambda scored: scored.log_ratio, differing) if differing else None,
        prefers_target=mean(lambda scored: scored.log_ratio > 0, differing) if differing else None,
    )
