"""Points in a plane, told apart by what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .panels import literal
from .style import STYLES

OTHERS = {"color": "0.8", "marker": "."}
"""The look of points whose name is not shown."""


def draw_points(
    axes: Any, points: Sequence[Sequence[float]], names: Sequence[str], shown: Sequence[str], title: str
) -> None:
    """Points (x, y) with a legend next to them; the markers tell names apart in grey.

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
        axes.scatter(*zip(*others, strict=True), s=12, label="other", **OTHERS)
    for name, look in looks.items():
        own = [point for point, other in zip(points, names, strict=True) if other == name]
        if own:
            axes.scatter(*zip(*own, strict=True), s=14, alpha=0.6, label=literal(name), **look)
    axes.legend(title=title, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=9)
