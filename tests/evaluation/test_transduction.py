"""Accuracy of transductions from the counts of each string, and the JSON of a result."""

from __future__ import annotations

from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.evaluation.transduction import accuracy_by_length, overall_accuracy

# The third string has no scored symbol, and the only string of length 9 has none either.
STRINGS = [(4, 2, 2), (4, 3, 1), (4, 0, 0), (6, 4, 4), (9, 0, 0), (6, 1, 0)]
INTERVALS = Intervals(200, 0.9, 0)


def test_symbols_are_pooled_and_strings_without_scored_symbols_do_not_count() -> None:
    actual = overall_accuracy(STRINGS, INTERVALS)
    assert (actual.strings, actual.scored, actual.correct) == (4, 10, 7)
    assert actual.accuracy.value == 0.7  # the mean over strings would be 0.583
    assert actual.whole_strings.value == 0.5
    for estimate in (actual.accuracy, actual.whole_strings):
        assert 0 <= estimate.low < estimate.value < estimate.high <= 1


def test_lengths() -> None:
    short, long = accuracy_by_length(STRINGS, INTERVALS)
    assert (short.length, short.strings, short.scored, short.correct) == (4, 2, 5, 3)
    assert (long.length, long.strings, long.scored, long.correct) == (6, 2, 5, 4)
    assert (short.whole_strings.value, long.whole_strings.value) == (0.5, 0.5)
