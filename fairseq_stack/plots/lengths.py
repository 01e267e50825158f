"""How long sentences are: figures, and a histogram as text and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.corpus import Corpus
from fairseq_stack.files import written_whole

from .style import SETTINGS, require_matplotlib

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_BINS = 12
BAR_WIDTH = 40
NICE = (1, 2, 5)
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")


@dataclass(frozen=True)
class LengthSummary:
    """Figures of a list of lengths; the median is the lower one of two."""

    count: int
    tokens: int
    least: int
    median: int
    greatest: int

    @property
    def mean(self) -> float:
        """The mean length."""
        return self.tokens / self.count


def summarise(lengths: Sequence[int]) -> LengthSummary:
    """Figures of ``lengths``, of which there is at least one."""
    ordered = sorted(lengths)
    middle = ordered[(len(ordered) - 1) // 2]
    return LengthSummary(len(ordered), sum(ordered), ordered[0], middle, ordered[-1])


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


def draw_lengths(corpus: Corpus, path: Path) -> None:
    """Draw the shares of lengths of all splits into a PNG, with a panel for each column.

    Raises:
        UserError: matplotlib is missing; or ``path`` cannot be written, or is a file but not a PNG.
    """
    require_matplotlib()
    require_replaceable_by_png(path)
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(column.name for split in corpus.splits for column in split.columns))
    with pyplot.rc_context(SETTINGS):
        figure, panels = pyplot.subplots(
            1, len(names), figsize=(4.5 * len(names), 3.2), layout="constrained", squeeze=False
        )
        for axes, name in zip(panels[0], names, strict=True):
            drawn = {
                split.name: column.lengths
                for split in corpus.splits
                for column in split.columns
                if column.name == name and column.lengths
            }
            edges = bin_edges(min(map(min, drawn.values())), max(map(max, drawn.values())), most=50)
            for number, (split_name, lengths) in enumerate(drawn.items()):
                weights = [100 / len(lengths)] * len(lengths)
                colour = COLOURS[number % len(COLOURS)]
                axes.hist(lengths, edges, weights=weights, histtype="step", label=split_name, color=colour)
            axes.set(title=name, xlabel="tokens in a sentence", ylabel="% of sentences")
            axes.legend(frameon=False)
        try:
            with written_whole(path) as file:
                figure.savefig(file, dpi=150, format="png", metadata={"Software": None})
        finally:
            pyplot.close(figure)
