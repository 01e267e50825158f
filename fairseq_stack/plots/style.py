"""How all figures look, and how they are saved."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole

# Okabe and Ito's colours, which colour-blind readers can tell apart; the markers tell the lines apart in grey.
STYLES: tuple[dict[str, str], ...] = (
    {"color": "#0072B2", "marker": "o"},
    {"color": "#E69F00", "marker": "s"},
    {"color": "#009E73", "marker": "^"},
    {"color": "#CC79A7", "marker": "D"},
)
BOUND = {"color": "0.3", "linestyle": "--"}
SETTINGS = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.markersize": 4,
    "svg.hashsalt": "fairseq_stack",
}


def style(number: int) -> dict[str, str]:
    """The style of the ``number``-th (from 0) of what a figure compares; after the last style comes the first."""
    return STYLES[number % len(STYLES)]


def require_matplotlib() -> None:
    """Raise UserError if matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("the picture needs matplotlib; install it with: pip install 'fairseq_stack[plots]'")


@contextlib.contextmanager
def figure(
    path: Path,
    rows: int,
    columns: int,
    size: tuple[float, float],
    file_format: str = "png",
    metadata: Mapping[str, str | None] | None = None,
) -> Iterator[Any]:
    """Yield the panels of a figure, an array (rows, columns) of matplotlib's axes; then write the figure to ``path``.

    Args:
        path: the file to write.
        rows: number of rows of panels.
        columns: number of columns of panels.
        size: width and height in inches.
        file_format: png, svg, ...
        metadata: entries of the file's metadata to set, or to leave out (None).

    Raises:
        UserError: ``path`` cannot be written.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context(SETTINGS):
        drawn, panels = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
        try:
            yield panels
            with written_whole(path) as file:
                drawn.savefig(file, dpi=150, format=file_format, metadata=metadata)
        finally:
            pyplot.close(drawn)
