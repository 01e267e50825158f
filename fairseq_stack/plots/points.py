"""Points in a plane, told apart by what they stand for."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from .panels import literal
from .style import STYLES

OTHERS = {"color": "0.8", "marker": "."}
"""The look of points whose name is not shown."""

MOST_POINTS = 150
"""Of more points of a name, one in so many is drawn: otherwise they would hide each other."""


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
        style = STYLES[number % len(STYLES)]
        face = style["color"] if number < len(STYLES) else "none"
        looks[name] = {"marker": style["marker"], "edgecolors": style["color"], "facecolors": face, "linewidths": 0.8}
    others = [point for point, name in zip(points, names, strict=True) if name not in looks]
    if others:
        axes.scatter(*zip(*_thinned(others), strict=True), s=12, label=f"other ({len(others):,})", **OTHERS)
    for name, look in looks.items():
        own = [point for point, other in zip(points, names, strict=True) if other == name]
        if own:
            label = f"{literal(name)} ({len(own):,})"
            axes.scatter(*zip(*_thinned(own), strict=True), s=14, alpha=0.6, label=label, **look)
            middle = [statistics.median(values) for values in zip(*own, strict=True)]
            box = {"facecolor": "white", "edgecolor": look["edgecolors"], "alpha": 0.9, "pad": 1.5}
            axes.text(*middle, literal(name), ha="center", va="center", fontsize=9, bbox=box, zorder=3)
    axes.legend(title=title, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)


def _thinned(points: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """At most :data:`MOST_POINTS` of the points, at equal distances."""
    return points[:: math.ceil(len(points) / MOST_POINTS)]
