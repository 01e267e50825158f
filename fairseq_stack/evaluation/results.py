"""What the results of all ``fairseq-stack evaluate-...`` share: the contract, JSON, CSV, and intervals in tables."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import types
import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as, written_whole
from fairseq_stack.version import __version__

DIGITS_OF_SHA = 8

Row: TypeAlias = "Mapping[str, object]"
"""A row of a CSV file: a value for each column. All rows have the same columns."""


@dataclass(frozen=True)
class Estimate:
    """A score with its confidence interval."""

    value: float
    low: float
    high: float

    def cells(self, digits: int) -> tuple[str, str]:
        """The score and its interval in a table."""
        return f"{self.value:.{digits}f}", f"{self.low:.{digits}f} to {self.high:.{digits}f}"

    def percent(self, digits: int) -> tuple[str, str]:
        """The same for a share, in percent."""
        value, interval = Estimate(100 * self.value, 100 * self.low, 100 * self.high).cells(digits)
        return f"{value} %", interval


@dataclass(frozen=True)
class Model:
    """The model that was evaluated.

    Attributes:
        checkpoint: the path of the checkpoint, as the user named it.
        arch: the name of its architecture.
        parameters: number of its parameters.
    """

    checkpoint: str
    arch: str
    parameters: int

    def on(self, data: str) -> str:
        """The first line of a result: on what, and of which model."""
        return f"{data}: {self.checkpoint} ({self.arch}, {self.parameters:,} parameters)"


@dataclass(frozen=True)
class Result(ABC):
    """What a command ``fairseq-stack evaluate-...`` finds out about a model.

    A subclass adds attributes, and each of them is an entry of the JSON, in their order. :meth:`read` builds the
    dataclasses and tuples that their types name, and ignores other entries.

    Attributes:
        kind: the command, and the entry ``kind`` of the JSON, by which a reader knows the file.
        signature: data, options and version, in the form of sacrebleu's signatures. Figures of results with equal
            signatures can be compared.
        model: the model.
    """

    kind: ClassVar[str]
    signature: str
    model: Model

    @abstractmethod
    def lines(self) -> list[str]:
        """The result as a user reads it, without the signature."""

    def write(self, path: Path) -> None:
        """Write the result as JSON.

        Raises:
            UserError: the file cannot be written.
        """
        content = {"kind": self.kind, **dataclasses.asdict(self)}
        text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
        with written_whole(path) as file:
            file.write(f"{text}\n".encode(errors="backslashreplace"))

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what :meth:`write` wrote.

        Raises:
            UserError: the file is not such a result, or an entry is missing or of another type.
        """
        with reading_as(f"a result of this version of fairseq-stack {cls.kind}", path):
            content = json.loads(read_text(path))
            if not isinstance(content, dict) or content.pop("kind", None) != cls.kind:
                raise UserError(f"{path} is not a result of fairseq-stack {cls.kind}")
            result: Self = _built(content, cls)
            return result


def method_of(**options: object) -> str:
    """The signature of a score that fairseq_stack itself computes with these options."""
    return "|".join(f"{name}:{value}" for name, value in {**options, "version": f"fairseq_stack-{__version__}"}.items())


def sha_of(content: object) -> str:
    """The beginning of the sha256 of what a result is about, for its signature; ``content`` is made of plain types."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:DIGITS_OF_SHA]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a CSV file in UTF-8 with a line of names and a line for each row; True and False are 1 and 0.

    Raises:
        UserError: the file cannot be written.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    with written_whole(path) as file:
        file.write(text.getvalue().encode(errors="backslashreplace"))


def rows_by_length(figures: Sequence[Any]) -> list[Row]:
    """A row for each length, which comes first, from the dataclasses of a result's ``by_length``."""
    return [{"length": scores.length, **_flat(scores)} for scores in figures]


def _flat(record: Any, prefix: str = "") -> dict[str, object]:
    """The entries of a dataclass; those of a dataclass in it have both names, as ``difference_low``, except a value."""
    entries: dict[str, object] = {}
    for entry in dataclasses.fields(record):
        name, value = f"{prefix}{entry.name}".removesuffix("_value"), getattr(record, entry.name)
        entries |= _flat(value, f"{name}_") if dataclasses.is_dataclass(value) else {name: value}
    return entries


def _built(value: Any, expected: Any) -> Any:
    """A value of JSON as the type ``expected``: a dataclass, a tuple, one of these or None, or a type of JSON."""
    arguments = typing.get_args(expected)
    if isinstance(expected, types.UnionType):  # X | None
        return None if value is None else _built(value, arguments[0])
    if typing.get_origin(expected) is tuple:
        return tuple(map(_built, value, arguments[:1] * len(value) if arguments[-1] is ... else arguments))
    if isinstance(expected, type) and dataclasses.is_dataclass(expected):
        hints = typing.get_type_hints(expected)
        names = [entry.name for entry in dataclasses.fields(expected)]
        return expected(**{name: _built(value[name], hints[name]) for name in names})
    kind = typing.get_origin(expected) or expected
    if not isinstance(value, (int, float) if kind is float else kind):
        raise TypeError(f"expected {kind.__name__}, found {value!r}")
    return value
