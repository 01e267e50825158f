"""Files of a corpus with a number for each sentence, such as lower bounds and depths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_lines

Number = TypeVar("Number", int, float)


def read_lower_bounds(path: Path) -> list[float]:
    """-log p(string and its end), in nats, for each string of a file ``SPLIT.nll`` of ``fairseq-stack prepare``.

    Raises:
        UserError: a line does not begin with a number.
    """
    return read_numbers(path, float)


def read_numbers(path: Path, kind: Callable[[str], Number]) -> list[Number]:
    """The number at the beginning of each line, which a tab may end.

    Raises:
        UserError: a line does not begin with a number of this kind.
    """
    numbers = []
    for line, text in enumerate(read_lines(path), start=1):
        try:
            numbers.append(kind(text.partition("\t")[0]))
        except ValueError as error:
            raise UserError(f"{path}, line {line}: expected a number, got {text!r}") from error
    return numbers


def require_as_many(path: Path, number: int, expected: int) -> None:
    """Raise UserError unless what was read from ``path`` has as many sentences as the corpus."""
    if number != expected:
        raise UserError(f"{path}: {number} sentences, expected {expected}, as many as in the corpus")
