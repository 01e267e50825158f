"""Side files with a number for each sentence, such as log-probabilities and depths."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ..errors import PrepareError
from .streams import read_lines

Number = TypeVar("Number", int, float)


def read_numbers(path: Path, kind: Callable[[str], Number]) -> list[Number]:
    """The number of each line.

    Args:
        path: the file.
        kind: ``int`` or ``float``.

    Raises:
        PrepareError: a line is not a number of this kind, or the file is not text.
        OSError: the file cannot be opened or read.
    """
    numbers = []
    for line, text in enumerate(read_lines(path), start=1):
        try:
            numbers.append(kind(text))
        except ValueError as error:
            raise PrepareError(f"{path}, line {line}: expected a number, got {text!r}") from error
    return numbers
