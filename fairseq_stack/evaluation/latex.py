"""Tables in LaTeX for the package booktabs. :mod:`.markdown` has the same functions."""

from __future__ import annotations

from collections.abc import Sequence

PLUS_MINUS = r"$\pm$"
BETWEEN = "\n"  # a blank line would begin a paragraph
MISSING = "--"

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{character: rf"\{character}" for character in "&%$#_{}"},
    **{character: rf"\text{name}{{}}" for character, name in {"<": "less", ">": "greater", "|": "bar"}.items()},
}


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with these names of columns; the first column is aligned to the left, the others to the right."""
    alignment = "l" + "r" * (len(columns) - 1)
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    head, *body = (_line(cells, widths) for cells in [columns, *rows])
    lines = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}"])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
    return rf"{' & '.join(padded)} \\"


def escaped(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def bold(text: str) -> str:
    """A text in bold."""
    return rf"\textbf{{{text}}}"


def number(text: str) -> str:
    """A number, with a minus sign instead of a hyphen."""
    return text.replace("-", "$-$")


def remark(text: str) -> str:
    """A note on the table: here a comment, since the caption is the author's."""
    return f"% {text}"


def signature(text: str) -> str:
    """The signature of a score."""
    return remark(text)
