"""The files of generated strings: bounds, and numbers written and read."""

from __future__ import annotations

import math

import pytest

from fairseq_stack_preprocess.cfl.string_sets import StringSet, lower_bound


def test_lower_bound_by_hand() -> None:
    """Two lengths; two strings of length 2 with probabilities 1/2 and 1/4 and one of length 3 with 1/8."""
    strings = [("a", "b"), ("b", "a"), ("a", "b", "a")]
    bound = lower_bound(StringSet([2, 3], strings, [math.log(p) for p in (1 / 2, 1 / 4, 1 / 8)]))
    # 1 + 2 + 3 bits for the strings and 3 for their lengths.
    assert bound["nats"] == pytest.approx(9 * math.log(2))
    assert (bound["strings"], bound["lengths"]) == (3, 2)
    assert (bound["tokens_with_eos"], bound["tokens_without_eos"]) == (10, 7)
    assert bound["bits_per_token_with_eos"] == pytest.approx(9 / 10, abs=1e-9)
    assert bound["bits_per_token_without_eos"] == pytest.approx(9 / 7, abs=1e-9)
    assert bound["nats_per_token_with_eos"] == pytest.approx(9 / 10 * math.log(2), abs=1e-9)
    assert bound["perplexity_without_eos"] == pytest.approx(2 ** (9 / 7), abs=1e-9)
    assert bound["by_length"]["2"]["bits_per_token_with_eos"] == pytest.approx(3 / 6, abs=1e-9)
    assert bound["by_length"]["3"]["bits_per_token_without_eos"] == pytest.approx(3 / 3, abs=1e-9)
