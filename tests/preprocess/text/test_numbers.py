"""Side files with a number for each sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.numbers import read_numbers


@pytest.mark.parametrize("line", ["2.5", "", "two"])
def test_a_line_without_a_number_of_the_kind(tmp_path: Path, line: str) -> None:
    (tmp_path / "test.depth").write_text(f"1\n{line}\n3\n", encoding="utf-8")
    with pytest.raises(PrepareError, match=rf"test\.depth, line 2: expected a number, got '{line}'"):
        read_numbers(tmp_path / "test.depth", int)
