"""Tables in Markdown, also readable as plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

MISSING = "-"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with these names of columns; the first column is aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_line(cells, widths) for cells in [columns, rule, *rows])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cells[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]
    return f"| {' | '.join(padded)} |"


def escaped(text: str) -> str:
    """A text that stays as it is in a cell."""
    return re.sub(r"([\\|*`])", r"\\\1", text)
