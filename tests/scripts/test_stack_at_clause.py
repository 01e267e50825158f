"""scripts/experiments/stack_at_clause.py: what a stack does at relative clauses."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest


def test_the_words_of_a_clause(script: ModuleType) -> None:
    words = ["my", "yak", "that", "the", "newt", "doesn't", "accept", "does", "sleep", ".", "quest"]
    clause = script.Clause(tuple(words), "RO I", (True, False))
    assert clause.auxiliaries == (5, 7)
    weights = np.arange(11 * 11, dtype=float).reshape(11, 11)
    measures = clause.measures(weights, np.arange(11.0))
    assert measures["push at the relative pronoun"] == 2
    assert measures["subject in the reading after the clause"] == 66 + 67
    assert measures["clause in the reading after the clause"] == sum(range(68, 73))
    assert measures["clause's auxiliary in the reading at the question"] == 115
    assert measures["main auxiliary in the reading at the question"] == 117


def test_pairs_are_compared_within_their_group(script: ModuleType) -> None:
    """The second group has greater values throughout, and more right pairs; the third has no wrong pair."""
    values = np.array([1.0, 2, 3, 10, 11, 12, 12, 7])
    right = np.array([False, True, False, False, True, True, True, True])
    groups = np.array([0, 0, 0, 1, 1, 1, 1, 2])
    estimate = script.probability_greater(values, right, groups)
    assert estimate.value == pytest.approx((1 + 3) / (2 + 3))
    assert estimate.low < estimate.value <= estimate.high
    assert script.probability_greater(values[-1:], right[-1:], groups[-1:]) is None
