"""Parses: the stack tape over time, trees, and the attention to tokens."""

from __future__ import annotations

import itertools
import math
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from .panels import literal

CHARACTER = 0.085
"""The width of a character of a word, in inches; of a wide one it is twice as much."""

MOST_CELLS_WITH_NUMBERS = 30
"""A tape of more words has no numbers in its cells."""

MOST_INCHES = 24
"""Words of a sentence that would be wider are turned."""

LEAST_INCHES = 3.6
"""The width that a title needs."""

LOOKS = (("0.25", ""), ("white", "////"))
"""Colour and hatch of the groups of bars."""


def width_of(word: str) -> float:
    """How wide a word is drawn, in inches."""
    return CHARACTER * sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in word)


def draw_tape(axes: Any, tape: Sequence[Sequence[int]], words: Sequence[str], label: str) -> None:
    """The depth of each word (column) after each word (row): darker cells are deeper, white before it is reduced.

    Args:
        axes: where to draw.
        tape: the rows, of which row t has an entry for the words 1, ..., t.
        words: the words.
        label: of the scale.
    """
    number = len(words)
    deepest = max([1, *map(max, tape)])
    square = [[*row, *[math.nan] * (number - len(row))] for row in tape]
    image = axes.imshow(square, cmap="Greys", vmin=0, vmax=deepest * 1.15, interpolation="nearest")
    size = 9 if number <= 40 else 6 if number <= 80 else 4
    shown = [literal(word) for word in words]
    axes.set_xticks(range(number), shown, fontsize=size, rotation=90)
    axes.set_yticks(range(number), shown, fontsize=size)
    axes.tick_params(length=0)
    # What has not been read is above the stairs.
    corners = [t + 0.5 for t in range(-1, number)]
    axes.step(corners, corners, "0.5", where="post", linewidth=0.7)
    for t, row in enumerate(tape):
        for j, depth in enumerate(row if number <= MOST_CELLS_WITH_NUMBERS else ()):
            colour = "white" if depth > 0.55 * deepest else "black"
            axes.text(j, t, str(depth), ha="center", va="center", fontsize=8, color=colour)
    scale = axes.figure.colorbar(image, ax=axes, label=label, fraction=0.03, pad=0.02)
    scale.ax.set_ylim(0, deepest)
    scale.ax.yaxis.get_major_locator().set_params(integer=True)
    axes.set(xlabel="word", ylabel="after reading")


def tree_size(words: Sequence[str], attachments: Sequence[int]) -> tuple[float, float]:
    """The width and the height, in inches, of what :func:`draw_tree` draws."""
    turned, width, places = _layout(words)
    height = max((y for *_, y in _branches(places, attachments)), default=0)
    below = max(map(width_of, words)) if turned else 0.2
    return max(width + 0.4, LEAST_INCHES), min(0.32 * height, 12) + 0.4 + below


def draw_tree(axes: Any, words: Sequence[str], attachments: Sequence[int]) -> None:
    """The trees that are built when word k attaches to r_k, with the words below them.

    Args:
        axes: where to draw.
        words: the words 1, ..., n.
        attachments: r_1, ..., r_n.
    """
    turned, width, places = _layout(words)
    for left, right, _, y in _branches(places, attachments):
        xs, ys = (left[0], left[0], right[0], right[0]), (left[1], y, y, right[1])
        axes.plot(xs, ys, color="black", linewidth=1)
    for word, x in zip(words, places, strict=True):
        axes.text(x, -0.15, literal(word), ha="center", va="top", fontsize=10, rotation=90 if turned else 0)
    axes.set_axis_off()
    axes.set_xlim(0, max(width, LEAST_INCHES - 0.4))
    axes.set_ylim(bottom=-0.2)


Point: TypeAlias = tuple[float, float]


def _branches(places: Sequence[float], attachments: Sequence[int]) -> list[tuple[Point, Point, float, float]]:
    """For each node that has two children their points, and its own x and y: y is the number of levels below it."""
    branches = []
    stack: list[tuple[int, Point]] = []
    for k, (r, x) in enumerate(zip(attachments, places, strict=True), start=1):
        right: Point = (x, 0)
        while r < k and stack and stack[-1][0] >= r:
            _, left = stack.pop()
            point = (left[0] + right[0]) / 2, max(left[1], right[1]) + 1
            branches.append((left, right, *point))
            right = point
        stack.append((k, right))
    return branches


def _layout(words: Sequence[str]) -> tuple[bool, float, list[float]]:
    """Whether words are written upwards, the width of all their columns, and the middle of each, in inches."""
    columns = [max(width_of(word) + 0.15, 0.3) for word in words]
    turned = sum(columns) > MOST_INCHES
    if turned:
        columns = [0.22] * len(words)
    middles = [end - width / 2 for end, width in zip(itertools.accumulate(columns), columns, strict=True)]
    return turned, sum(columns), middles


def draw_attention(
    axes: Any, weights: Sequence[float], tokens: Sequence[str], groups: Mapping[str, Collection[int]]
) -> None:
    """A bar for the weight of each token; in the legend, the sum over each group of tokens.

    Args:
        axes: where to draw.
        weights: of the tokens.
        tokens: their labels.
        groups: by name, the places of tokens; the bars of each group look different.
    """
    bars = axes.bar(range(len(tokens)), weights, color="0.85", edgecolor="black", linewidth=0.6)
    for (name, places), (colour, hatch) in zip(groups.items(), LOOKS, strict=False):
        for place in places:
            bars[place].set(facecolor=colour, hatch=hatch)
        label = f"{name} (sum {sum(weights[place] for place in places):.2f})"
        axes.bar([0], [0], color=colour, hatch=hatch, edgecolor="black", linewidth=0.6, label=label)
    size = 9 if len(tokens) <= 40 else 6 if len(tokens) <= 80 else 4
    axes.set_xticks(range(len(tokens)), [literal(token) for token in tokens], fontsize=size, rotation=90)
    axes.tick_params(axis="x", length=0)
    axes.set_xlim(-0.7, len(tokens) - 0.3)
    axes.set(ylabel="attention, the mean\nof layers and heads")
    if groups:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
