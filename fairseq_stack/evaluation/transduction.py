"""The result of ``fairseq-stack evaluate-transduction``, its parts, and how they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from .intervals import Intervals
from .markdown import table
from .results import Estimate, Result

LEARNED = 0.98
"""A trial with at least this accuracy on validation data has learned its task."""


Transduced: TypeAlias = "tuple[int, int, int]"
"""Of a string the numbers of its symbols, of those that are scored, and of scored ones that a model writes."""


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

    def cells(self, name: str) -> list[str]:
        """A row of the table."""
        counts = [f"{count:,}" for count in (self.strings, self.scored, self.correct)]
        return [name, *counts, *self.accuracy.percent(2), *self.whole_strings.percent(2)]


@dataclass(frozen=True)
class LengthAccuracy(Accuracy):
    """The accuracy on the strings of one length."""

    length: int


@dataclass(frozen=True)
class TransductionResult(Result):
    """A model on the strings of a transduction task.

    Attributes:
        task: the name of the task, or the folder of the data.
        split: the part of the corpus.
        score_words: the words of targets that are scored.
        overall: the accuracy on all strings.
        by_length: the accuracy for each length, ascending.
    """

    kind: ClassVar[str] = "evaluate-transduction"
    task: str
    split: str
    score_words: tuple[str, ...]
    overall: Accuracy
    by_length: tuple[LengthAccuracy, ...]

    def lines(self) -> list[str]:
        columns = ("length", "strings", "scored", "correct", "accuracy", "interval", "whole strings", "interval")
        rows = [accuracy.cells(f"{accuracy.length}") for accuracy in self.by_length]
        title = self.model.on(f"{self.task}, {self.split}")
        return [title, "", table(columns, [*rows, self.overall.cells("all")])]


def overall_accuracy(strings: Sequence[Transduced], intervals: Intervals) -> Accuracy:
    """The accuracy on all strings, at least one of which has a scored symbol."""
    return _accuracy(strings, intervals, stream=0)


def accuracy_by_length(strings: Sequence[Transduced], intervals: Intervals) -> tuple[LengthAccuracy, ...]:
    """The accuracy for each length of which there is a string with a scored symbol, ascending."""
    by_length: dict[int, list[Transduced]] = {}
    for string in strings:
        length, scored, _ = string
        if scored:
            by_length.setdefault(length, []).append(string)
    return tuple(
        LengthAccuracy(**vars(_accuracy(group, intervals, stream=length)), length=length)
        for length, group in sorted(by_length.items())
    )


def _accuracy(strings: Sequence[Transduced], intervals: Intervals, stream: int) -> Accuracy:
    _, scored, correct = zip(*(string for string in strings if string[1]), strict=True)
    whole = [of_string == of_target for of_string, of_target in zip(correct, scored, strict=True)]
    return Accuracy(
        strings=len(whole),
        scored=sum(scored),
        correct=sum(correct),
        accuracy=intervals.of_rate(correct, scored, 2 * stream),
        whole_strings=intervals.of_rate(whole, [1] * len(whole), 2 * stream + 1),
    )
