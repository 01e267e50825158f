"""Figures and histograms of lengths."""

from __future__ import annotations

from itertools import pairwise

import hypothesis
from hypothesis import strategies

from fairseq_stack.plots.length_drawings import bin_edges, histogram

LENGTHS = strategies.lists(strategies.integers(0, 5000), min_size=1, max_size=50)


@hypothesis.given(LENGTHS)
def test_edges_hold_all_lengths_in_few_bins_of_a_round_width(lengths: list[int]) -> None:
    edges = bin_edges(min(lengths), max(lengths))
    widths = {high - low for low, high in pairwise(edges)}
    assert len(widths) == 1
    assert str(widths.pop()).rstrip("0") in {"1", "2", "5"}
    assert len(edges) <= 13
    assert edges[0] <= min(lengths) < edges[1]
    assert edges[-2] <= max(lengths) < edges[-1]


@hypothesis.given(LENGTHS)
def test_histogram_counts_every_length_once(lengths: list[int]) -> None:
    rows = [line.split() for line in histogram(lengths)]
    assert sum(int(row[1].replace(",", "")) for row in rows) == len(lengths)
    for row in rows:
        low, _, high = row[0].partition("-")
        expected = sum(int(low) <= length <= int(high or low) for length in lengths)
        assert int(row[1].replace(",", "")) == expected
        assert (len(row) == 3) == (expected > 0)
    assert max(len(row[2]) for row in rows if len(row) == 3) == 40


def test_histogram_as_it_is_printed() -> None:
    rows = [f"  5-9  1,000  {'#' * 40}", *(f"{n}-{n + 4}      0" for n in (10, 15, 20, 25)), "30-34      1  #"]
    assert histogram([5] * 1000 + [30]) == rows
