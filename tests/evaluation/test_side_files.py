"""Files of a corpus with a number for each sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.side_files import read_lower_bounds, read_numbers, require_as_many


def test_the_bound_is_the_first_number_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "test.nll"
    path.write_text("8.383433\t8.347066\n9.5\n", encoding="utf-8")
    assert read_lower_bounds(path) == [8.383433, 9.5]


@pytest.mark.parametrize("line", ["2.5", "", "two"])
def test_a_line_without_a_number_of_the_kind(tmp_path: Path, line: str) -> None:
    path = tmp_path / "test.depth"
    path.write_text(f"1\n{line}\n3\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"test\.depth, line 2: expected a number, got '{line}'"):
        read_numbers(path, int)


def test_as_many_as_in_the_corpus() -> None:
    require_as_many(Path("score.out"), 2, 2)
    with pytest.raises(UserError, match=r"^score\.out: 1 sentences, expected 2, as many as in the corpus$"):
        require_as_many(Path("score.out"), 1, 2)
