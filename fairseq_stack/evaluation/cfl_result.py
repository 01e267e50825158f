"""The result of ``fairseq-stack evaluate-cfl``: its parts, and its JSON."""

from __future__ import annotations

import dataclasses
import json
import math
import types
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, written_whole

KIND = "evaluate-cfl"
"""The entry ``kind`` of every result, by which a reader knows the file."""


@dataclass(frozen=True)
class Estimate:
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class NextSymbol:
    """How often the model's most probable symbol is right, where the language allows only one.

    Attributes:
        positions: number of such positions in the strings; the end of a string counts as a symbol.
        correct: number of those at which the model's most probable symbol is that one.
    """

    positions: int
    correct: int

    @property
    def accuracy(self) -> float | None:
        """The share of correct positions; None if no position counts."""
        return self.correct / self.positions if self.positions else None


@dataclass(frozen=True)
class StringScores:
    """A model's figures on some strings, in nats a token.

    Attributes:
        strings: number of strings.
        tokens: number of symbols, with the ends of strings if they are counted.
        cross_entropy: what a token costs the model.
        bound: what a token costs the distribution of the strings itself.
        difference: ``cross_entropy - bound``, with its bootstrap interval.
        next_symbol: None if it is not known where only one symbol is possible.
    """

    strings: int
    tokens: int
    cross_entropy: float
    bound: float
    difference: Estimate
    next_symbol: NextSymbol | None


@dataclass(frozen=True)
class LengthScores(StringScores):
    """The figures on the strings of one length; the bound is the one of strings of that length."""

    length: int


@dataclass(frozen=True)
class Samples:
    """Strings drawn from the model.

    Attributes:
        strings: number of strings.
        in_language: number of those that are in the language.
        unfinished: number of those that did not end within ``max_length`` symbols; they are not in the language.
        max_length: the greatest number of symbols.
    """

    strings: int
    in_language: int
    unfinished: int
    max_length: int

    @property
    def share(self) -> float:
        """The share of strings in the language."""
        return self.in_language / self.strings


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


@dataclass(frozen=True)
class CFLResult:
    """A language model on the strings of a formal language.

    Attributes:
        signature: data, options and version, in the form of sacrebleu's signatures. Figures of results with equal
            signatures can be compared.
        language: the name of the task, or the file of the grammar.
        split: the part of the corpus.
        eos: whether the ends of strings are counted.
        train_lengths: the least and the greatest length of the strings in train.
        bootstrap: number of resampled sets behind each interval.
        confidence: the probability of each interval, such as 0.95.
        model: the model.
        overall: the figures on all strings; the bound has the cost of the length.
        by_length: the figures for each length, ascending.
        samples: None if no strings were drawn.
    """

    signature: str
    language: str
    split: str
    eos: bool
    train_lengths: tuple[int, int]
    bootstrap: int
    confidence: float
    model: Model
    overall: StringScores
    by_length: tuple[LengthScores, ...]
    samples: Samples | None

    def write(self, path: Path) -> None:
        """Write the result as JSON.

        Raises:
            UserError: the file cannot be written.
        """
        text = json.dumps({"kind": KIND, **dataclasses.asdict(self)}, indent=2, ensure_ascii=False, allow_nan=False)
        with written_whole(path) as file:
            file.write(f"{text}\n".encode())


def read_cfl_result(path: Path) -> CFLResult:
    """Read what :meth:`CFLResult.write` wrote.

    Raises:
        UserError: the file cannot be read, is not such a result, or an entry is missing or of another type.
    """
    try:
        content = json.loads(read_text(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.pop("kind", None) != KIND:
        raise UserError(f"{path} is not a result of fairseq-stack evaluate-cfl")
    try:
        result: CFLResult = _parsed(content, CFLResult, "")
    except ValueError as error:
        raise UserError(f"{path} is not a result of this version of fairseq-stack evaluate-cfl: {error}") from error
    return result


def _parsed(value: Any, expected: Any, name: str) -> Any:
    """A value of JSON as the type ``expected``; ValueError names the entry that is wrong."""
    if dataclasses.is_dataclass(expected):
        return _record(value, expected, name)
    arguments = typing.get_args(expected)
    if isinstance(expected, types.UnionType):  # X | None
        return None if value is None else _parsed(value, arguments[0], name)
    if typing.get_origin(expected) is tuple:
        return _sequence(value, arguments, name)
    if expected is float and type(value) is int:
        value = float(value)
    if type(value) is not expected or (expected is float and not math.isfinite(value)):
        raise ValueError(f"{name} must be {_NAMES[expected]}, got {json.dumps(value)[:40]}")
    return value


_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


def _record(value: Any, expected: Any, name: str) -> Any:
    types_of_entries = typing.get_type_hints(expected)
    names = {entry: f"{name}.{entry}".removeprefix(".") for entry in types_of_entries}
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, got {json.dumps(value)[:40]}")
    for entry in types_of_entries:
        if entry not in value:
            raise ValueError(f"{names[entry]} is missing")
    for entry in value:
        if entry not in types_of_entries:
            raise ValueError(f"{name}.{entry} is unknown".removeprefix("."))
    return expected(**{entry: _parsed(value[entry], of, names[entry]) for entry, of in types_of_entries.items()})


def _sequence(value: Any, types_of_items: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{name} must be an array, got {json.dumps(value)[:40]}")
    if types_of_items[-1] is ...:
        types_of_items = (types_of_items[0],) * len(value)
    if len(value) != len(types_of_items):
        raise ValueError(f"{name} must have {len(types_of_items)} items, got {len(value)}")
    pairs = enumerate(zip(value, types_of_items, strict=True))
    return tuple(_parsed(item, of, f"{name}[{number}]") for number, (item, of) in pairs)
