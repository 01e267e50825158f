"""Tables of rows of measurements, which are also written to JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairseq_stack.evaluation.markdown import table

from .timing import Times

Row = dict[str, Any]
Columns = Mapping[str, str | Callable[[Row], str]]
"""By title: the key of a number or a text, or what makes the cell of a row."""

ABSENT = "-"
PASSES = {"forward ms": "forward_ms", "backward ms": "backward_ms", "sum ms": "total_ms"}


def table_of(columns: Columns, rows: Sequence[Row]) -> str:
    """A table of rows."""
    cells = [[_cell(row[x]) if isinstance(x, str) else x(row) for x in columns.values()] for row in rows]
    return table([*columns], cells)


def _cell(value: Any) -> str:
    """A text, a whole number, or three digits of another one, or all those before the point."""
    if value is None:
        return ABSENT
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def milliseconds(times: Times) -> Row:
    """The times of both passes, and their sum."""
    forward, backward = times
    return {"forward_ms": 1e3 * forward, "backward_ms": 1e3 * backward, "total_ms": 1e3 * (forward + backward)}


def sizes(row: Row) -> str:
    """The sizes of a case."""
    return ", ".join(map(str, row["sizes"].values()))


def error(row: Row) -> str:
    """A column of errors."""
    return f"{row['error']:.0e}"
