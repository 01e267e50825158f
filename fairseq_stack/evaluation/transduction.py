"""The result of ``fairseq-stack evaluate-transduction``: its parts, how they are computed, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .intervals import Intervals
from .results import Estimate, Model, read_result, write_result

KIND = "evaluate-transduction"
"""The entry ``kind`` of every result, by which a reader knows the file."""


@dataclass(frozen=True)
class Counts:
    """What a model has right in each of N strings.

    Attributes:
        lengths: numbers of symbols, (N,).
        scored: numbers of those that are scored, (N,).
        correct: numbers of scored symbols that the model writes, (N,).
    """

    lengths: NDArray[np.int64]
    scored: NDArray[np.int64]
    correct: NDArray[np.int64]

    def of(self, rows: NDArray[np.bool_]) -> Counts:
        """The counts of some of the strings."""
        return Counts(self.lengths[rows], self.scored[rows], self.correct[rows])


@dataclass(frozen=True)
class Accuracy:
    """How often a model is right on some strings.

    Attributes:
        strings: number of strings with a scored symbol; others do not count.
        scored: number of scored symbols in them.
        correct: number of those that the model writes.
        accuracy: the share of these, with its bootstrap interval.
        whole_strings: the share of strings in which all scored symbols are right, with its interval.
    """

    strings: int
    scored: int
    correct: int
    accuracy: Estimate
    whole_strings: Estimate


@dataclass(frozen=True)
class LengthAccuracy(Accuracy):
    """The accuracy on the strings of one length."""

    length: int


@dataclass(frozen=True)
class TransductionResult:
    """A model on the strings of a transduction task.

    Attributes:
        signature: data, options and version, in the form of sacrebleu's signatures. Figures of results with equal
            signatures can be compared.
        task: the name of the task, or the folder of the data.
        split: the part of the corpus.
        score_words: the words of targets that are scored.
        bootstrap: number of resampled sets behind each interval.
        confidence: the probability of each interval, such as 0.95.
        model: the model.
        overall: the accuracy on all strings.
        by_length: the accuracy for each length, ascending.
    """

    signature: str
    task: str
    split: str
    score_words: tuple[str, ...]
    bootstrap: int
    confidence: float
    model: Model
    overall: Accuracy
    by_length: tuple[LengthAccuracy, ...]

    def write(self, path: Path) -> None:
        """Write the result as JSON.

        Raises:
            UserError: the file cannot be written.
        """
        write_result(path, KIND, self)


def read_transduction_result(path: Path) -> TransductionResult:
    """Read what :meth:`TransductionResult.write` wrote.

    Raises:
        UserError: see :func:`read_result`.
    """
    return read_result(path, KIND, TransductionResult)


def overall_accuracy(counts: Counts, intervals: Intervals) -> Accuracy:
    """The accuracy on all strings, at least one of which has a scored symbol."""
    return _accuracy(counts.of(counts.scored > 0), intervals, stream=0)


def accuracy_by_length(counts: Counts, intervals: Intervals) -> tuple[LengthAccuracy, ...]:
    """The accuracy for each length of which there is a string with a scored symbol, ascending."""
    counts = counts.of(counts.scored > 0)
    found = []
    for length in map(int, np.unique(counts.lengths)):
        accuracy = _accuracy(counts.of(counts.lengths == length), intervals, stream=length)
        found.append(LengthAccuracy(**vars(accuracy), length=length))
    return tuple(found)


def _accuracy(counts: Counts, intervals: Intervals, stream: int) -> Accuracy:
    whole = counts.correct == counts.scored
    return Accuracy(
        strings=len(whole),
        scored=int(counts.scored.sum()),
        correct=int(counts.correct.sum()),
        accuracy=intervals.of_rate(counts.correct.astype(float), counts.scored, 2 * stream),
        whole_strings=intervals.of_rate(whole.astype(float), np.ones_like(counts.scored), 2 * stream + 1),
    )
