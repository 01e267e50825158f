"""What a stack does, drawn over the symbols that are read: one column for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .panels import literal
from .style import style

LONG_LABEL = 4
"""Labels of more characters are turned, and left out in cells."""

START = "start"
"""The label of the column before the first symbol."""

MOST_COLUMNS_WITH_TEXT_INSIDE = 60
"""A picture with more columns has no text in its cells."""

MOST_COLUMNS_WITH_TEXT_BELOW = 85
"""More columns leave no space for text below them, except the symbols."""

NEW: dict[str, Any] = {"edgecolor": "black", "linewidth": 1.8}
OLD: dict[str, Any] = {"edgecolor": "0.45", "linewidth": 0.6}
"""The edges of cells that a step pushed or replaced, and of the others."""

HATCHES = ("", "////", "....", "\\\\\\\\", "xx", "++", "oo")
"""They tell the colours apart in grey."""

Cell = tuple[str, int]
"""What stands in an element of a stack, and the number of its colour."""


def width_for(columns: int) -> float:
    """The width of a picture, in inches."""
    return min(3.5 + 0.26 * columns, 22)


def label_columns(axes: Any, symbols: Sequence[str]) -> None:
    """Write the symbols below the columns."""
    turned = any(len(symbol) > LONG_LABEL for symbol in symbols if symbol != START)
    size = 9 if len(symbols) <= 40 else 6 if len(symbols) <= 80 else 4
    axes.set_xticks(range(len(symbols)), [literal(x) for x in symbols], fontsize=size, rotation=90 if turned else 0)


def draw_shares(
    axes: Any, shares: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], label: str
) -> None:
    """Numbers from 0 to 1, (rows, columns), darker for larger values, with a scale next to them."""
    image = axes.imshow(shares, cmap="Greys", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    axes.set_yticks(range(len(rows)), [literal(x) for x in rows], fontsize=9 if len(rows) <= 12 else 7)
    label_columns(axes, columns)
    axes.tick_params(length=0)
    axes.set_xticks([x - 0.5 for x in range(1, len(columns))], minor=True)
    axes.set_yticks([y - 0.5 for y in range(1, len(rows))], minor=True)
    axes.grid(which="minor", color="0.85", linewidth=0.5)
    axes.tick_params(which="minor", length=0)
    axes.figure.colorbar(image, ax=axes, label=label, fraction=0.03, pad=0.01)


def draw_growing_stack(
    axes: Any,
    stacks: Sequence[Sequence[Cell]],
    written: Sequence[bool],
    below: Sequence[Sequence[str]],
    columns: Sequence[str],
) -> None:
    """The stack before the first column and after each, as a column of cells.

    Args:
        axes: where to draw.
        stacks: the cells from the bottom to the top; one stack more than columns.
        written: for each stack whether its top has just been pushed or replaced, even by the same symbol.
        below: rows of texts to write below the columns, each as many as stacks.
        columns: the symbols that are read; above the first stack none is.
    """
    highest = max(map(len, stacks))
    places: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for x, stack in enumerate(stacks):
        for y, (_, colour) in enumerate(stack):
            is_new = written[x] and y == len(stack) - 1
            places.setdefault((colour, is_new), []).append((x, y))
    for (colour, is_new), cells in sorted(places.items(), key=lambda item: item[0][1]):  # new cells above old ones
        _draw_cells(axes, cells, colour, NEW if is_new else OLD)
    if len(stacks) <= MOST_COLUMNS_WITH_TEXT_INSIDE and all(
        len(text) <= LONG_LABEL for stack in stacks for text, _ in stack
    ):
        _write_in_cells(axes, stacks)
    for row, texts in enumerate(below, 1):
        for x, text in enumerate(texts):
            axes.text(x, -0.75 * row, text, ha="center", va="center", fontsize=7)
    axes.set_xlim(-0.6, len(stacks) - 0.4)
    axes.set_ylim(-0.75 * len(below) - 0.5, highest + 0.3)
    label_columns(axes, [START, *columns])
    step = max(1, math.ceil(highest / 10))
    axes.set_yticks([y + 0.5 for y in range(0, highest, step)], [str(y + 1) for y in range(0, highest, step)])
    axes.tick_params(length=0)


def _draw_cells(axes: Any, places: Sequence[tuple[int, int]], colour: int, edge: dict[str, Any]) -> None:
    """Cells that look the same, as one artist: thousands of patches would take a minute."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [(-0.45, 0), (0.45, 0), (0.45, 1), (-0.45, 1), (-0.45, 0)]
    vertices = [(x + right, y + up) for x, y in places for right, up in corners]
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * len(places)
    axes.add_patch(PathPatch(Path(vertices, codes), **_look(colour), **edge))


def _write_in_cells(axes: Any, stacks: Sequence[Sequence[Cell]]) -> None:
    for x, stack in enumerate(stacks):
        for y, (text, colour) in enumerate(stack):
            if text:
                background = {"facecolor": _look(colour)["facecolor"], "edgecolor": "none", "pad": 0.8}
                size = 8 if len(text) < LONG_LABEL else 6
                axes.text(x, y + 0.5, literal(text), ha="center", va="center", fontsize=size, bbox=background)


def name_cells(axes: Any, names: Sequence[str]) -> None:
    """A legend for the cells, whose colours have these names."""
    from matplotlib.patches import Patch

    handles = [Patch(label=name, **_look(number), **OLD) for number, name in enumerate(names)]
    handles.append(Patch(facecolor="white", label="pushed or replaced", **NEW))
    axes.legend(handles=handles, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)


def _look(number: int) -> dict[str, Any]:
    """The pale colour and the hatch of cells."""
    colour = style(number)["color"]
    pale = tuple(0.45 + 0.55 * int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return {"facecolor": pale, "hatch": HATCHES[number % len(HATCHES)]}
