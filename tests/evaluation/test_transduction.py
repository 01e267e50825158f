"""Accuracy of transductions from the counts of each string, and the JSON of a result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.results import Model
from fairseq_stack.evaluation.transduction import (
    Counts,
    TransductionResult,
    accuracy_by_length,
    overall_accuracy,
    read_transduction_result,
)

# The third string has no scored symbol, and the only string of length 9 has none either.
COUNTS = Counts(np.array([4, 4, 4, 6, 9, 6]), np.array([2, 3, 0, 4, 0, 1]), np.array([2, 1, 0, 4, 0, 0]))
INTERVALS = Intervals(200, 0.9, 0)


def test_symbols_are_pooled_and_strings_without_scored_symbols_do_not_count() -> None:
    found = overall_accuracy(COUNTS, INTERVALS)
    assert (found.strings, found.scored, found.correct) == (4, 10, 7)
    assert found.accuracy.value == 0.7  # the mean over strings would be 0.583
    assert found.whole_strings.value == 0.5
    for estimate in (found.accuracy, found.whole_strings):
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1


def test_lengths() -> None:
    short, long = accuracy_by_length(COUNTS, INTERVALS)
    assert (short.length, short.strings, short.scored, short.correct) == (4, 2, 5, 3)
    assert (long.length, long.strings, long.scored, long.correct) == (6, 2, 5, 4)
    assert (short.whole_strings.value, long.whole_strings.value) == (0.5, 0.5)


def test_each_length_has_random_numbers_of_its_own() -> None:
    scored, correct = np.full(60, 9), np.tile(np.arange(30) % 9, 2)
    short, long = accuracy_by_length(Counts(np.repeat([4, 6], 30), scored, correct), INTERVALS)
    assert short.accuracy.value == long.accuracy.value
    assert short.accuracy != long.accuracy


def test_json(tmp_path: Path) -> None:
    result = TransductionResult(
        signature="task:reversal",
        task="reversal",
        split="test",
        score_words=("0", "1"),
        bootstrap=200,
        confidence=0.9,
        model=Model("m.pt", "neural_stack", 42),
        overall=overall_accuracy(COUNTS, INTERVALS),
        by_length=accuracy_by_length(COUNTS, INTERVALS),
    )
    path = tmp_path / "result.json"
    result.write(path)
    assert read_transduction_result(path) == result
    path.write_text(path.read_text().replace("evaluate-transduction", "evaluate-cfl"))
    with pytest.raises(UserError, match=r"result\.json is not a result of fairseq-stack evaluate-transduction$"):
        read_transduction_result(path)
