"""How all figures look, and how they are saved."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError, missing_package
from fairseq_stack.files import written_whole

# Okabe and Ito's colours, which colour-blind readers can tell apart; the markers tell the lines apart in grey. Their
# yellow is left out: it is too light for lines on white.
STYLES: tuple[dict[str, str], ...] = (
    {"color": "#0072B2", "marker": "o"},
    {"color": "#E69F00", "marker": "s"},
    {"color": "#009E73", "marker": "^"},
    {"color": "#CC79A7", "marker": "D"},
    {"color": "#56B4E9", "marker": "v"},
    {"color": "#D55E00", "marker": "P"},
    {"color": "#000000", "marker": "X"},
)
LINES = ("-", "--", ":")
PLACES = {
    "tf": 0,
    "sup": 1,
    "tf+sup": 1,
    "nd": 2,
    "tf+nd": 2,
    "lstm+nd": 3,
    "lstm": 4,
    "lstm+sup": 5,
    "lstm+strat": 6,
}
"""Where in :data:`STYLES` the papers' models and the kinds of layers are, by their names in lower case."""
BOUND = {"color": "0.3", "linestyle": "--"}
SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "figure.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4,
    "svg.hashsalt": "fairseq_stack",
    "pdf.fonttype": 42,  # TrueType: many conferences refuse the default, Type 3
}

MOST_COLUMNS = 3

FORMATS = (".pdf", ".png", ".svg")
"""How the names of pictures end."""

DATES = {"pdf": "CreationDate", "svg": "Date"}
"""The entry of a file's metadata that holds the time, which would make every file different, by format."""


def style(number: int) -> dict[str, str]:
    """The style of the ``number``-th (from 0) of what a figure compares; after the last style comes the first."""
    return STYLES[number % len(STYLES)]


def styles_of(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """A style for each name, all different; the models of :data:`PLACES` have the same one in every figure.

    Other names get the free styles in their order.
    """
    names = list(dict.fromkeys(names))
    numbers: dict[str, int] = {}
    for name in names:
        place = PLACES.get(name.lower())
        if place is not None and place not in numbers.values():
            numbers[name] = place
    free = (number for number in itertools.count() if number not in numbers.values())
    others = [name for name in names if name not in numbers]
    numbers |= dict(zip(others, free, strict=False))
    return {name: {**style(number), "linestyle": _line(number)} for name, number in numbers.items()}


def _line(number: int) -> str:
    return LINES[number // len(STYLES) % len(LINES)]


def grid(number: int) -> tuple[int, int]:
    """Rows and columns for ``number`` panels."""
    rows = math.ceil(number / MOST_COLUMNS)
    return rows, math.ceil(number / rows)


def require_format(path: Path) -> None:
    """Raise UserError unless the name of a picture ends with one of :data:`FORMATS`."""
    if path.suffix not in FORMATS:
        raise UserError(f"{path}: expected a name that ends with one of {', '.join(FORMATS)}")


def require_matplotlib() -> None:
    """Raise MissingPackage if matplotlib is not installed, without the time that importing it takes."""
    if importlib.util.find_spec("matplotlib") is None:
        raise missing_package("matplotlib")


@contextlib.contextmanager
def figure(
    path: Path,
    rows: int,
    columns: int,
    size: tuple[float, float],
    heights: Sequence[float] | None = None,
    widths: Sequence[float] | None = None,
    title: str = "",
) -> Iterator[Any]:
    """Yield the panels of a figure, an array (rows, columns) of matplotlib's axes; then write the figure to ``path``.

    The same figure gives the same file: the time is not written into it. The figure is none of pyplot's, so that
    pyplot keeps the caller's settings, as in a notebook.

    Args:
        path: the file to write, in the format that its suffix names.
        rows: number of rows of panels.
        columns: number of columns of panels.
        size: width and height in inches.
        heights: the relative heights of the rows (default: all rows are equally high).
        widths: the relative widths of the columns (default: all columns are equally wide).
        title: what the figure says, above all panels; ``$`` begins a formula.

    Raises:
        MissingPackage: matplotlib is not installed.
        UserError: ``path`` cannot be written, or a formula in the title is wrong.
    """
    require_matplotlib()
    import matplotlib
    from matplotlib.figure import Figure

    file_format = path.suffix[1:]
    undated = {DATES[file_format]: None} if file_format in DATES else {}
    with matplotlib.rc_context(SETTINGS):
        drawn = Figure(figsize=size, layout="constrained")
        if title:
            _set_title(drawn, title)
        yield drawn.subplots(rows, columns, squeeze=False, height_ratios=heights, width_ratios=widths)
        with written_whole(path) as file:
            drawn.savefig(file, dpi=150, format=file_format, metadata=undated)


def _set_title(drawn: Any, title: str) -> None:
    try:
        drawn.suptitle(title, wrap=True).get_window_extent()  # which reads its formulas
    except ValueError as error:
        raise UserError(f"title {title!r}: {str(error).strip().splitlines()[-1]}") from error
