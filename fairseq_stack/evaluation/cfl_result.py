"""The result of ``fairseq-stack evaluate-cfl`` and its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .markdown import table
from .results import Estimate, ResultWithIntervals

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
class CFLResult(ResultWithIntervals):
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
