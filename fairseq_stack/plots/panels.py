"""What is drawn into one panel of a figure; ``axes`` are matplotlib's."""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Mapping, Sequence, Sized
from typing import Any

from fairseq_stack.errors import UserError

from .style import BOUND, STYLES, style

GROUP_WIDTH = 0.8
"""Of a group of bars, where the groups are 1 apart."""

LEAST_DECADES, MOST_DECADES = 0.8, 3.5
"""For a logarithmic scale with labels at several steps in each decade: otherwise there would be too few or too many."""

CHARACTERS_IN_INCH, CHARACTERS_OF_HANDLE = 12, 9
"""How many characters of a legend fit, and how much room the line next to a label takes."""

LETTERS_IN_NOTE = 32
"""The longest line of a note."""

LARGEST = "#D55E00"
"""The outline of the largest weight of a row."""

MARKERS = 10
"""At most about this many points of a line have a marker."""

OTHERS = {"color": "0.8", "marker": "."}
"""The look of points whose name is not shown."""

MOST_POINTS = 150
"""Of more points of a name, one in so many is drawn: otherwise they would hide each other."""


def literal(text: str) -> str:
    """A text that matplotlib shows as it is: no formula, and in a legend even if it begins with an underscore."""
    escaped = text.replace("$", r"\$")
    return rf"$\_${escaped[1:]}" if escaped.startswith("_") else escaped


def draw_bound(axes: Any, bound: float, label: str = "lower bound") -> None:
    """A dashed line at the least y that is possible."""
    axes.axhline(bound, label=label, **BOUND)


def draw_note(axes: Any, lines: Sequence[str]) -> None:
    """Small text in the upper left corner of a panel."""
    _write_small(axes, 0.97, "top", [literal(line) for line in lines])


def _write_small(axes: Any, height: float, anchor: str, lines: Sequence[str]) -> None:
    text = "\n".join(textwrap.fill(line, LETTERS_IN_NOTE) for line in lines)
    axes.text(0.03, height, text, transform=axes.transAxes, ha="left", va=anchor, fontsize=8, color="0.3", zorder=3)


def draw_runs(
    axes: Any, label: str, runs: Sequence[Mapping[float, float]], shown: int, look: Mapping[str, str]
) -> None:
    """Curves, which map x to y, of runs of one model: thin ones, and for ``runs[shown]`` a thick one with the label."""
    for number, points in enumerate(runs):
        x, y = list(points), list(points.values())
        if number == shown:
            axes.plot(x, y, label=literal(label), linewidth=1.8, markevery=_every(x), zorder=2.2, **look)
        else:
            axes.plot(x, y, linewidth=0.7, alpha=0.6, **{**look, "marker": ""})


def _every(points: Sized) -> int:
    """Of so many points one has a marker."""
    return max(1, math.ceil(len(points) / MARKERS))


def draw_intervals(
    axes: Any, label: str, points: Mapping[int, tuple[float, float, float]], look: Mapping[str, str]
) -> None:
    """A line and the band around it; ``points`` maps x to y and to the lower and the upper edge of the band."""
    values, lows, highs = zip(*points.values(), strict=True)
    axes.fill_between(list(points), lows, highs, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(list(points), values, label=literal(label), markevery=_every(points), **look)


def draw_rows(
    axes: Any, points: Mapping[str, Mapping[str, tuple[float, float, float]]], looks: Mapping[str, Mapping[str, str]]
) -> None:
    """A row for each name: for each label a point x and the line through it, from its minimum to its maximum x.

    Args:
        axes: of the panel.
        points: by label, and by name of the row, which are the same for all labels, from top to bottom.
        looks: the style of each label.
    """
    rows = list(next(iter(points.values())))
    step = GROUP_WIDTH / len(points)
    for number, (label, of_label) in enumerate(points.items()):
        places = [row + (number - (len(points) - 1) / 2) * step for row in range(len(rows))]
        values, lows, highs = zip(*(of_label[row] for row in rows), strict=True)
        color = looks[label]["color"]
        axes.hlines(places, lows, highs, color=color, linewidth=1)
        axes.plot(values, places, label=literal(label), linestyle="", color=color, marker=looks[label]["marker"])
    axes.set_yticks(range(len(rows)), [literal(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)


def scale_logarithmically(axes: Any) -> None:
    """Make y, which is drawn already, logarithmic.

    Numbers stand at 1, 2 and 5 in each decade, unless there are very few decades or many. Small text names the lines
    of which a point cannot be shown.

    Raises:
        UserError: no y is greater than 0.
    """
    if not any(y > 0 for line in axes.get_lines() for y in line.get_ydata()):
        raise UserError("a logarithmic scale needs values greater than 0; there are none; leave out --log")
    cut = [line.get_label() for line in axes.get_lines() if min(line.get_ydata(), default=1) <= 0]
    if named := [label for label in cut if not label.startswith("_")]:
        _write_small(axes, 0.03, "bottom", [f"points at 0 or below are not shown: {', '.join(named)}"])
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if LEAST_DECADES <= math.log10(high / low) <= MOST_DECADES:
        # Left alone, a locator whose axis is short leaves out decades, and then all steps.
        axes.yaxis.get_major_locator().set_params(subs=(1, 2, 5), numticks=20)
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")


def hide_unused(panels: Any, number: int) -> None:
    """Make all panels except the first ``number`` invisible."""
    for axes in panels.flat[number:]:
        axes.set_axis_off()


def draw_legend(panels: Any, number: int) -> None:
    """One legend for the first ``number`` of the panels: in the first of the others, or below all panels.

    Its lines come before its areas, even if a later panel has more lines.
    """
    from matplotlib.patches import Patch

    used, unused = panels.flat[:number], panels.flat[number:]
    entries: dict[str, Any] = {}
    for axes in used:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    entries = dict(sorted(entries.items(), key=lambda entry: isinstance(entry[1], Patch)))
    if len(unused):
        hide_unused(panels, number)
        unused[0].legend(entries.values(), entries.keys(), frameon=False, loc="center")
        return
    figure = used[0].figure
    widths = [len(label) + CHARACTERS_OF_HANDLE for label in entries]
    room = figure.get_figwidth() * CHARACTERS_IN_INCH
    columns = len(widths) if sum(widths) <= room else max(1, int(room // max(widths)))
    figure.legend(entries.values(), entries.keys(), frameon=False, loc="outside lower center", ncols=columns)


def mark_largest(axes: Any, weights: Sequence[Sequence[float]]) -> None:
    """Outline the largest of each row of the weights that :func:`draw_weights` has drawn, and write it there."""
    from matplotlib.patches import Rectangle

    size = 8 if len(weights[0]) <= 22 else 5
    for y, row in enumerate(weights):
        x = max(range(len(row)), key=lambda place: row[place])
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, fill=False, edgecolor=LARGEST, linewidth=1.5))
        colour = "black" if row[x] > 0.6 else "white"
        axes.text(x, y, f"{row[x]:.2f}", ha="center", va="center", fontsize=size, color=colour)


def draw_weights(
    axes: Any, weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str], label: str = "weight"
) -> None:
    """Weights between 0 and 1 as colours, (rows, columns), with a scale next to them that has the label."""
    image = axes.imshow(weights, cmap="viridis", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    size = 8 if len(rows) <= 22 else 6
    axes.set_xticks(range(len(columns)), map(literal, columns), fontsize=size, rotation=90)
    axes.set_yticks(range(len(rows)), map(literal, rows), fontsize=size)
    axes.tick_params(length=0)
    axes.figure.colorbar(image, ax=axes, label=label)


def draw_points(
    axes: Any, points: Sequence[Sequence[float]], names: Sequence[str], shown: Sequence[str], title: str
) -> None:
    """Points (x, y), with each name written at the median of its points and in a legend with their number.

    The markers tell names apart in grey.

    Args:
        axes: where to draw.
        points: the points.
        names: what each of them stands for.
        shown: the names that have a look of their own: as many as there are styles are filled, the others hollow.
        title: of the legend.
    """
    looks: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(shown):
        look = style(number)
        face = look["color"] if number < len(STYLES) else "none"
        looks[name] = {"marker": look["marker"], "edgecolors": look["color"], "facecolors": face, "linewidths": 0.8}
    others = [point for point, name in zip(points, names, strict=True) if name not in looks]
    if others:
        axes.scatter(*zip(*_thinned(others), strict=True), s=12, label=f"other ({len(others):,})", **OTHERS)
    for name, look in looks.items():
        own = [point for point, other in zip(points, names, strict=True) if other == name]
        label = f"{literal(name)} ({len(own):,})"
        axes.scatter(*zip(*_thinned(own), strict=True), s=14, alpha=0.6, label=label, **look)
        middle = [statistics.median(values) for values in zip(*own, strict=True)]
        box = {"facecolor": "white", "edgecolor": look["edgecolors"], "alpha": 0.9, "pad": 1.5}
        axes.text(*middle, literal(name), ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    axes.legend(title=title, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)


def _thinned(points: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """At most :data:`MOST_POINTS` of the points, at equal distances."""
    return points[:: math.ceil(len(points) / MOST_POINTS)]
