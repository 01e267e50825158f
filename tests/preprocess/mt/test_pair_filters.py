"""Which pairs are dropped and why, and samples."""

from __future__ import annotations

import random
from collections import Counter

import hypothesis
import pytest
from hypothesis import strategies

from fairseq_stack_preprocess.mt.pair_filters import (
    EMPTY,
    RATIO,
    TOO_LONG,
    PairFilter,
    sample_by_index,
    sample_by_reservoir,
)

PAPER = PairFilter(empty=True, lone_period=True, max_ratio=4.0, max_chars=150)
PAIRS = [(f"Satz {number}", f"sentence {number}") for number in range(1000)]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("Ja.", " \x85\u2003", EMPTY),
        (" ", ".", EMPTY),
        ("x", "y" * 4, None),
        ("x", "y" * 5, RATIO),
        ("x   ", "y" * 16, None),  # Blanks at the ends count.
        ("x" * 150 + " ", "y" * 150, TOO_LONG),
        ("", "y" * 200, EMPTY),
    ],
)
def test_first_reason_counts(source: str, target: str, reason: str | None) -> None:
    assert PAPER.reason(source, target) == reason
    assert PAPER.reason(target, source) == reason


@pytest.mark.parametrize("size", [1, 21, 22, 999, 1000])
def test_sample_by_index_is_the_authors_rule(size: int) -> None:
    sample, count = sample_by_index(lambda: iter(PAIRS), size, 123)
    assert sample == random.Random(123).sample(list(PAIRS), size)
    assert count == 1000


def test_sample_by_index_is_the_same_in_every_version_of_python() -> None:
    sample, _ = sample_by_index(lambda: iter(PAIRS), 5, 123)
    assert [pair[0] for pair in sample] == ["Satz 53", "Satz 274", "Satz 89", "Satz 787", "Satz 417"]


@hypothesis.given(count=strategies.integers(0, 50), size=strategies.integers(1, 50), seed=strategies.integers(0, 99))
def test_reservoir_is_a_part_in_the_order_of_the_corpus(count: int, size: int, seed: int) -> None:
    sample, seen = sample_by_reservoir(PAIRS[:count], size, seed)
    assert seen == count
    assert len(sample) == min(size, count)
    assert sample == sorted(set(sample), key=PAIRS.index)
    assert sample_by_reservoir(PAIRS[:count], size, seed) == (sample, seen)


def test_reservoir_takes_each_pair_equally_often() -> None:
    """Of 12 pairs 3 are taken; over 4000 seeds each is taken 1000 times, give or take 5 standard deviations."""
    counts = Counter(pair for seed in range(4000) for pair in sample_by_reservoir(PAIRS[:12], 3, seed)[0])
    assert len(counts) == 12
    assert all(abs(count - 1000) < 5 * (4000 * 0.25 * 0.75) ** 0.5 for count in counts.values())


def test_samples_larger_than_the_corpus_keep_all() -> None:
    assert sample_by_reservoir(PAIRS[:9], 10, 0) == (PAIRS[:9], 9)
    sample, count = sample_by_index(lambda: iter(PAIRS[:9]), 10, 0)
    assert (sorted(sample), count) == (PAIRS[:9], 9)
