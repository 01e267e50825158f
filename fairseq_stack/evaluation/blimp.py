"""BLiMP (Warstadt et al., 2020): minimal pairs, and the result of ``fairseq-stack evaluate-blimp``."""

from __future__ import annotations

import itertools
import json
import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines

from .intervals import Intervals
from .markdown import table
from .results import Estimate, Result, Row


@dataclass(frozen=True)
class Pair:
    """A minimal pair.

    Attributes:
        paradigm: the name of its file, without the suffix.
        field: of linguistics, such as ``morphology``.
        phenomenon: such as ``anaphor_agreement``.
        good: the acceptable sentence.
        bad: the other one.
    """

    paradigm: str
    field: str
    phenomenon: str
    good: str
    bad: str


@dataclass(frozen=True)
class Scored:
    """What a model says about a pair.

    Attributes:
        pair: the pair.
        good: log p of the acceptable sentence, with or without its end.
        bad: the same for the other one.
        unknown: whether a word of the two is unknown to the model.
    """

    pair: Pair
    good: float
    bad: float
    unknown: bool

    @property
    def is_tie(self) -> bool:
        """Whether the sentences are equally probable."""
        return self.good == self.bad

    def row(self) -> Row:
        """The pair and its scores, for a CSV file."""
        figures = {"log_p_good": self.good, "log_p_bad": self.bad, "tie": self.is_tie, "unknown": self.unknown}
        return {**vars(self.pair), **figures}


@dataclass(frozen=True)
class Accuracy:
    """How often a model finds the acceptable sentence more probable.

    Attributes:
        name: of the paradigm, the phenomenon or the field; ``all`` for all pairs.
        pairs: number of pairs.
        unknown: share of the pairs with a word that the model does not know.
        ties: share of the pairs whose sentences are equally probable, mostly because they differ in unknown words only.
        accuracy: the mean over paradigms, with its bootstrap interval over the pairs of each; a tie counts one half.
    """

    name: str
    pairs: int
    unknown: float
    ties: float
    accuracy: Estimate

    def cells(self) -> list[str]:
        """A row of the table."""
        shares = [f"{100 * share:.1f} %" for share in (self.unknown, self.ties)]
        return [self.name, f"{self.pairs:,}", *shares, *self.accuracy.percent(1)]


@dataclass(frozen=True)
class BLiMPResult(Result):
    """A model on BLiMP.

    Attributes:
        overall: on all paradigms.
        fields: for each field.
        phenomena: for each phenomenon.
        paradigms: for each paradigm.
    """

    kind: ClassVar[str] = "evaluate-blimp"
    overall: Accuracy
    fields: tuple[Accuracy, ...]
    phenomena: tuple[Accuracy, ...]
    paradigms: tuple[Accuracy, ...]

    def lines(self) -> list[str]:
        columns = ("", "pairs", "with unknown words", "ties", "accuracy", "interval")
        rows = [accuracy.cells() for accuracy in (*self.fields, *self.phenomena, self.overall)]
        return [self.model.on("BLiMP"), "", table(columns, rows)]


def read_pairs(folder: Path, limit: int | None) -> list[Pair]:
    """Read the pairs of all ``PARADIGM.jsonl`` of a folder, in the order of their names.

    Args:
        folder: the folder ``data`` of BLiMP.
        limit: how many pairs to read of each paradigm, from its beginning; None for all.

    Raises:
        UserError: the folder has no such file, or a line is not a pair.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder; expected the one with BLiMP's paradigms, *.jsonl")
    pairs = [pair for path in sorted(folder.glob("*.jsonl")) for pair in _read_paradigm(path, limit)]
    if not pairs:
        raise UserError(f"{folder} has no pairs of BLiMP, *.jsonl")
    return pairs


def _read_paradigm(path: Path, limit: int | None) -> Iterable[Pair]:
    lines = [(number, line) for number, line in enumerate(read_lines(path), start=1) if line.strip()]
    for number, line in lines[:limit]:
        try:
            content: Any = json.loads(line)
            good, bad = content["sentence_good"].strip(), content["sentence_bad"].strip()
            pair = Pair(path.stem, content["field"].replace("/", "_"), content["linguistics_term"].strip(), good, bad)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(f"{path}, line {number} is not a pair of BLiMP: {error!r}") from error
        if not good or not bad:
            raise UserError(f"{path}, line {number}: sentence_{'bad' if good else 'good'} is empty")
        yield pair


def accuracies(
    pairs: Sequence[Scored], intervals: Intervals
) -> tuple[Accuracy, tuple[Accuracy, ...], tuple[Accuracy, ...], tuple[Accuracy, ...]]:
    """The accuracy on all pairs, and for each field, phenomenon and paradigm."""
    streams = itertools.count()
    overall = _accuracy("all", pairs, intervals, next(streams))
    fields, phenomena, paradigms = (
        tuple(
            _accuracy(name, [scored for scored in pairs if part_of(scored.pair) == name], intervals, next(streams))
            for name in sorted({part_of(scored.pair) for scored in pairs})
        )
        for part_of in map(operator.attrgetter, ("field", "phenomenon", "paradigm"))
    )
    return overall, fields, phenomena, paradigms


def _accuracy(name: str, pairs: Sequence[Scored], intervals: Intervals, stream: int) -> Accuracy:
    right = defaultdict(list)
    for scored in pairs:
        right[scored.pair.paradigm].append(0.5 if scored.is_tie else float(scored.good > scored.bad))
    unknown, ties = (sum(flags) / len(pairs) for flags in zip(*((x.unknown, x.is_tie) for x in pairs), strict=True))
    return Accuracy(name, len(pairs), unknown, ties, intervals.of_mean_of_groups(list(right.values()), stream))
