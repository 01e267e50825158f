"""The files of generated strings: bounds, and numbers written and read."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fairseq_stack_preprocess.cfl.string_sets import StringSet, lower_bound, read_numbers, write_numbers
from fairseq_stack_preprocess.errors import PrepareError


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


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    numbers = [0.0, -math.pi, 1e-300, 1e16, math.log(3), -math.inf]
    write_numbers(tmp_path / "numbers", numbers)
    assert read_numbers(tmp_path / "numbers") == numbers


def test_files_with_a_second_column_are_read(tmp_path: Path) -> None:
    """As ``prepare reversal`` once wrote them."""
    (tmp_path / "test.nll").write_text("3.465736\t2.772589\n5.545177\t5.545177\n")
    assert read_numbers(tmp_path / "test.nll") == [3.465736, 5.545177]


def test_what_is_no_number_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "test.nll").write_text("1.5\n\n")
    with pytest.raises(PrepareError, match=r"test\.nll, line 2: expected a number, got ''$"):
        read_numbers(tmp_path / "test.nll")
