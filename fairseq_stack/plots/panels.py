"""What is drawn into one panel of a figure; ``axes`` are matplotlib's. Labels, ticks and legends are the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .style import BOUND, style

GROUP_WIDTH = 0.8
"""Of a group of bars, where the groups are 1 apart."""


def draw_curves(axes: Any, curves: Mapping[str, Mapping[int, float]]) -> None:
    """A line for each of ``curves``, which map x to y by label."""
    for number, (label, points) in enumerate(curves.items()):
        axes.plot(list(points), list(points.values()), label=label, **style(number))


def draw_bound(axes: Any, bound: float, label: str = "") -> None:
    """A dashed line at the least y that is possible."""
    axes.axhline(bound, label=label, **BOUND)


def draw_bars(axes: Any, bars: Mapping[str, Mapping[int, float]]) -> None:
    """Groups of bars with their heights above them; ``bars`` maps a group to a height by label."""
    width = GROUP_WIDTH / len(bars)
    for number, (label, heights) in enumerate(bars.items()):
        shift = (number - (len(bars) - 1) / 2) * width
        places = [group + shift for group in heights]
        drawn = axes.bar(places, list(heights.values()), width, color=style(number)["color"], label=label)
        axes.bar_label(drawn, fmt="%.0f", fontsize=8)
    axes.set_xticks(sorted({group for heights in bars.values() for group in heights}))


def draw_weights(axes: Any, weights: Sequence[Sequence[float]], rows: Sequence[str], columns: Sequence[str]) -> None:
    """Weights between 0 and 1 as colours, (rows, columns), with a scale beside them."""
    image = axes.imshow(weights, cmap="viridis", vmin=0, vmax=1, interpolation="nearest", aspect="auto")
    size = 8 if len(rows) <= 22 else 6
    axes.set_xticks(range(len(columns)), columns, fontsize=size, rotation=90)
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
    axes.tick_params(length=0)
    axes.figure.colorbar(image, ax=axes, label="weight")
