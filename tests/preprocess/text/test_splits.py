"""Random streams, and drawing without repetition."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.splits import TRIES_IN_A_ROW, distinct, stream


def test_distinct_skips_and_counts_repetitions() -> None:
    taken, dropped = {"0": "test"}, Counter[str]()
    items = distinct(iter([0, 1, 1, 2, 0, 3]), key=str, size=3, split="train", taken=taken, dropped=dropped)
    assert list(items) == [1, 2, 3]
    assert dropped == {"already in test": 2, "already in train": 1}
    assert taken == {"0": "test", "1": "train", "2": "train", "3": "train"}


def test_distinct_gives_up_after_the_stated_number_of_tries() -> None:
    rng, dropped = random.Random(0), Counter[str]()
    draws = (rng.randrange(10) for _ in itertools.count())
    items = distinct(draws, key=str, size=11, split="valid", taken={}, dropped=dropped)
    message = f"--valid-size 11 is too large: 10 sentences were found, then {TRIES_IN_A_ROW} draws in a row"
    with pytest.raises(PrepareError, match=message):
        list(items)
    assert dropped["already in valid"] >= TRIES_IN_A_ROW


def test_streams_differ_by_seed_and_split() -> None:
    values = {(seed, split): stream(seed, split).random() for seed in (0, 1) for split in ("train", "test")}
    assert len(set(values.values())) == 4
    assert stream(0, "train").random() == values[0, "train"]
