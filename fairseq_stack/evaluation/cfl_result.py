"""The result of ``fairseq-stack evaluate-cfl``, its parts, and how they are computed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from .intervals import Intervals
from .markdown import table
from .results import Estimate, Result

NOTE_ON_BOUNDS = (
    "The bound of all strings has the cost of the length, the bound of one length does not: the difference of all "
    "strings can be less than that of every length."
)
"""A footnote, wherever the two differences can be compared."""


@dataclass(frozen=True)
class StringScores:
    """A model's scores on some strings, in nats per symbol.

    Attributes:
        strings: number of strings.
        tokens: number of symbols, with the ends of strings if they are counted.
        cross_entropy: what a token costs the model.
        bound: what a token costs the distribution of the strings itself.
        difference: ``cross_entropy - bound``, with its bootstrap interval.
    """

    strings: int
    tokens: int
    cross_entropy: float
    bound: float
    difference: Estimate

    def cells(self, name: str) -> list[str]:
        """A row of the table."""
        figures = f"{self.strings:,}", f"{self.cross_entropy:.4f}", f"{self.bound:.4f}"
        return [name, *figures, *self.difference.cells(4)]


@dataclass(frozen=True)
class LengthScores(StringScores):
    """The scores on the strings of one length; the bound is the one of strings of that length."""

    length: int


@dataclass(frozen=True)
class Samples:
    """Strings drawn from the model.

    Attributes:
        strings: number of strings.
        in_language: number of those that are in the language.
        unfinished: number of those that did not end within ``max_length`` symbols; they are not in the language.
        max_length: the maximum number of symbols.
    """

    strings: int
    in_language: int
    unfinished: int
    max_length: int

    @property
    def share(self) -> float:
        """The share of strings in the language."""
        return self.in_language / self.strings

    def __str__(self) -> str:
        line = f"samples: {self.in_language:,} of {self.strings:,} in the language ({100 * self.share:.1f} %)"
        if self.unfinished:
            line += f"; {self.unfinished:,} did not end within {self.max_length} symbols"
        return line


@dataclass(frozen=True)
class CFLResult(Result):
    """A language model on the strings of a formal language.

    Attributes:
        language: the name of the task, or the file of the grammar.
        split: the part of the corpus.
        eos: whether the ends of strings are counted.
        train_lengths: the minimum and maximum length of the strings in train.
        overall: the scores on all strings; the bound has the cost of the length.
        by_length: the scores for each length, ascending.
        samples: None if no strings were drawn.
    """

    kind: ClassVar[str] = "evaluate-cfl"
    language: str
    split: str
    eos: bool
    train_lengths: tuple[int, int]
    overall: StringScores
    by_length: tuple[LengthScores, ...]
    samples: Samples | None

    def lines(self) -> list[str]:
        columns = ("length", "strings", "nats per symbol", "bound", "difference", "interval")
        rows = [scores.cells(f"{scores.length}") for scores in self.by_length]
        lines = [
            self.model.on(f"{self.language}, {self.split}"),
            "",
            table(columns, [*rows, self.overall.cells("all")]),
            "",
            NOTE_ON_BOUNDS,
        ]
        if self.samples is not None:
            lines.append(str(self.samples))
        return lines


@dataclass(frozen=True)
class StringLoss:
    """What a string costs a model and the distribution of the strings, in nats.

    Attributes:
        length: number of symbols, without the end.
        tokens: number of symbols that are counted, with the end or without.
        loss: of the model, on these.
        bound: of the distribution; it has the cost of the length.
        bound_given_length: of the distribution given the length.
    """

    length: int
    tokens: int
    loss: float
    bound: float
    bound_given_length: float


def string_losses(
    log_probabilities: Sequence[Sequence[float]],
    bounds: Sequence[float],
    bounds_given_length: Sequence[float],
    *,
    eos: bool,
) -> list[StringLoss]:
    """The losses of strings.

    Args:
        log_probabilities: for each string of n symbols the model's log-probabilities of these and the end, (n + 1,).
        bounds: for each string -log p(string).
        bounds_given_length: for each string -log p(string | its length).
        eos: whether the ends of strings are counted.
    """
    losses = []
    for values, *of_string in zip(log_probabilities, bounds, bounds_given_length, strict=True):
        length = len(values) - 1
        tokens = length + eos
        losses.append(StringLoss(length, tokens, -math.fsum(values[:tokens]), *of_string))
    return losses


def overall_scores(strings: Sequence[StringLoss], intervals: Intervals) -> StringScores:
    """The scores on all strings; the bound has the cost of the length."""
    return _scores(strings, [string.bound for string in strings], intervals, stream=0)


def scores_by_length(strings: Sequence[StringLoss], intervals: Intervals) -> tuple[LengthScores, ...]:
    """The scores for each length, ascending; the bound is given the length."""
    by_length: dict[int, list[StringLoss]] = {}
    for string in strings:
        by_length.setdefault(string.length, []).append(string)
    return tuple(
        LengthScores(
            **vars(_scores(group, [string.bound_given_length for string in group], intervals, stream=length)),
            length=length,
        )
        for length, group in sorted(by_length.items())
    )


def _scores(strings: Sequence[StringLoss], bounds: Sequence[float], intervals: Intervals, stream: int) -> StringScores:
    tokens, losses = [string.tokens for string in strings], [string.loss for string in strings]
    differences = [loss - bound for loss, bound in zip(losses, bounds, strict=True)]
    return StringScores(
        strings=len(strings),
        tokens=sum(tokens),
        cross_entropy=math.fsum(losses) / sum(tokens),
        bound=math.fsum(bounds) / sum(tokens),
        difference=intervals.of_rate(differences, tokens, stream),
    )
