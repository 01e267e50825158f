"""Side files with a number for each sentence."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.numbers import read_numbers, write_numbers


def test_numbers_come_back_to_the_last_bit(tmp_path: Path) -> None:
    numbers = [0.0, -math.pi, 1e-300, 1e16, math.log(3), -math.inf]
    write_numbers(tmp_path / "numbers", numbers)
    assert read_numbers(tmp_path / "numbers", float) == numbers


@pytest.mark.parametrize("line", ["2.5", "", "two"])
def test_a_line_without_a_number_of_the_kind(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.depth").write_text(f"1\n{line}\n3\n", encoding="utf-8")
    with pytest.raises(PrepareError, match=rf"test\.depth, line 2: expected a number, got '{line}'"):
        read_numbers(tmp_path / "test.depth", int)
