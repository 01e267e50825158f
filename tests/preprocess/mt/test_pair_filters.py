"""Which pairs are dropped and why, and samples."""

from __future__ import annotations

import random

import pytest

from fairseq_stack_preprocess.mt.pair_filters import EMPTY, RATIO, TOO_LONG, PairFilter, draw_sample

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
def test_draw_sample_is_the_authors_rule(size: int) -> None:
    sample, count = draw_sample(lambda: iter(PAIRS), size, 123)
    assert sample == random.Random(123).sample(list(PAIRS), size)
    assert count == 1000


def test_draw_sample_is_the_same_in_every_version_of_python() -> None:
    sample, _ = draw_sample(lambda: iter(PAIRS), 5, 123)
    assert [pair[0] for pair in sample] == ["Satz 53", "Satz 274", "Satz 89", "Satz 787", "Satz 417"]


def test_samples_larger_than_the_corpus_keep_all() -> None:
    sample, count = draw_sample(lambda: iter(PAIRS[:9]), 10, 0)
    assert (sorted(sample), count) == (PAIRS[:9], 9)
