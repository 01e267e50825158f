"""Random streams, and drawing without repetition."""

from __future__ import annotations

from collections import Counter

from fairseq_stack_preprocess.text.splits import distinct


def test_distinct_skips_and_counts_repetitions() -> None:
    taken, dropped = {"0": "test"}, Counter[str]()
    items = distinct(iter([0, 1, 1, 2, 0, 3]), key=str, size=3, split="train", taken=taken, dropped=dropped)
    assert list(items) == [1, 2, 3]
    assert dropped == {"already in test": 2, "already in train": 1}
    assert taken == {"0": "test", "1": "train", "2": "train", "3": "train"}
