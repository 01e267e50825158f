"""How long sentences are: a histogram as text and as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from fairseq_stack.errors import UserError

from .style import figure, require_matplotlib, style

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_BINS = 12
BAR_WIDTH = 40
NICE = (1, 2, 5)


def bin_edges(least: int, greatest: int, most: int = MOST_BINS) -> list[int]:
    """Edges of at most ``most`` bins of a width of 1, 2 or 5 times a power of ten that hold all lengths.

    Each bin holds the lengths from its edge up to the next edge, without that.
    """
    width = next(
        nice * 10**power
        for power in range(len(str(greatest)) + 1)
        for nice in NICE
        if greatest // (nice * 10**power) - least // (nice * 10**power) < most
    )
    first = least // width * width
    return list(range(first, greatest + width + 1, width))


def histogram(lengths: Sequence[int]) -> list[str]:
    """Lines ``from-to  count  bar``; the longest bar has :data:`BAR_WIDTH` characters."""
    edges = bin_edges(min(lengths), max(lengths))
    counts = [0] * (len(edges) - 1)
    width = edges[1] - edges[0]
    for length in lengths:
        counts[(length - edges[0]) // width] += 1
    names = [str(low) if width == 1 else f"{low}-{high - 1}" for low, high in pairwise(edges)]
    name_width, count_width = max(map(len, names)), len(f"{max(counts):,}")
    bars = ["#" * math.ceil(BAR_WIDTH * count / max(counts)) for count in counts]
    rows = zip(names, counts, bars, strict=True)
    return [f"{name:>{name_width}}  {count:>{count_width},}  {bar}".rstrip() for name, count, bar in rows]


def require_replaceable_by_png(path: Path) -> None:
    """Raise UserError if ``path`` is a file but not a PNG: a typo must not overwrite a corpus."""
    if not path.is_file():
        return
    with open(path, "rb") as file:
        start = file.read(len(PNG_SIGNATURE))
    if start not in (b"", PNG_SIGNATURE):
        raise UserError(f"{path} exists and is not a PNG; choose another name")


def draw_lengths(lengths: Mapping[str, Mapping[str, Sequence[int]]], path: Path) -> None:
    """Draw the shares of lengths into a PNG, with a panel for each column of a corpus.

    Args:
        lengths: for each column and split the lengths of its sentences, of which there is at least one.
        path: the file to write.

    Raises:
        UserError: matplotlib is missing; or ``path`` cannot be written, or is a file but not a PNG.
    """
    require_matplotlib()
    require_replaceable_by_png(path)
    size = (4.5 * len(lengths), 3.2)
    with figure(path, rows=1, columns=len(lengths), size=size, metadata={"Software": None}) as panels:
        for axes, (column, by_split) in zip(panels[0], lengths.items(), strict=True):
            edges = bin_edges(min(map(min, by_split.values())), max(map(max, by_split.values())), most=50)
            for number, (split, of_split) in enumerate(by_split.items()):
                weights = [100 / len(of_split)] * len(of_split)
                colour = style(number)["color"]
                axes.hist(of_split, edges, weights=weights, histtype="step", label=split, color=colour)
            axes.set(title=column, xlabel="tokens in a sentence", ylabel="% of sentences")
            axes.legend(frameon=False)
