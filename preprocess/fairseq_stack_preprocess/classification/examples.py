"""Tables of examples in GLUE's form: a line with the names of the columns, then tab-separated lines without quotes."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrepareError
from ..text.streams import read_lines, require_file


@dataclass(frozen=True)
class Example:
    """A line of a table.

    Attributes:
        place: its file and line.
        sentences: by their columns.
        label: the label, or the value of a regression.
    """

    place: str
    sentences: Mapping[str, str]
    label: str


def read_examples(path: Path, columns: Sequence[str], label_column: str) -> list[Example]:
    """The examples of a table.

    Args:
        path: the file.
        columns: those of the sentences.
        label_column: that of the labels.

    Raises:
        PrepareError: the file cannot be read, lacks a column or has it twice, or has no examples; a line has too few or
            too many columns; or a sentence or a label is empty.
    """
    require_file(path)
    lines = read_lines(path)
    header = next(lines).split("\t")
    for column in (*columns, label_column):
        if header.count(column) != 1:
            raise PrepareError(f"{path}, line 1: expected one column {column!r}, got {', '.join(map(repr, header))}")
    examples = list(_examples(path, lines, header, columns, label_column))
    if not examples:
        raise PrepareError(f"{path} has no line after its header")
    return examples


def _examples(
    path: Path, lines: Iterator[str], header: Sequence[str], columns: Sequence[str], label_column: str
) -> Iterator[Example]:
    for number, line in enumerate(lines, start=2):
        place, cells = f"{path}, line {number}", line.split("\t")
        if len(cells) != len(header):
            raise PrepareError(f"{place}: expected {len(header)} columns, as in line 1, got {len(cells)}")
        row = dict(zip(header, map(str.strip, cells), strict=True))
        for column in (*columns, label_column):
            if not row[column]:
                raise PrepareError(f"{place}: column {column!r} is empty")
        yield Example(place, {column: row[column] for column in columns}, row[label_column])


def check_labels(examples: Sequence[Example], labels: Collection[str], expected: str) -> None:
    """Raise PrepareError if an example has another label; ``expected`` says what these labels are."""
    for example in examples:
        if example.label not in labels:
            raise PrepareError(
                f"{example.place}: label {example.label!r}; expected {expected}, {', '.join(sorted(labels))}"
            )


def check_numbers(examples: Sequence[Example]) -> None:
    """Raise PrepareError if the label of an example is not a number."""
    for example in examples:
        try:
            is_number = math.isfinite(float(example.label))
        except ValueError:
            is_number = False
        if not is_number:
            raise PrepareError(f"{example.place}: expected a number, as there are no --labels; got {example.label!r}")
