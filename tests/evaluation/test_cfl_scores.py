"""The cross-entropy difference and its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from fairseq_stack.evaluation.cfl_result import (
    StringLoss,
    overall_scores,
    scores_by_length,
    string_losses,
)
from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack_preprocess.cfl.language_corpus import generate
from fairseq_stack_preprocess.cfl.language_options import Options
from fairseq_stack_preprocess.cfl.string_sets import StringSet, lower_bound

INTERVALS = Intervals(number=200, confidence=0.9, seed=3)


@pytest.fixture(scope="module")
def dyck() -> StringSet:
    options = Options("dyck", test_min_length=4, test_max_length=40, test_per_length=20, train_size=1, valid_size=1)
    return generate(options).splits["test"]


def losses_of(strings: StringSet, costs: Sequence[float], *, eos: bool) -> list[StringLoss]:
    """Losses of a model to which whole strings with their ends cost ``costs``, in unequal parts."""
    lengths = [len(string) for string in strings.strings]
    log_probabilities = [
        [-cost * place / sum(range(length + 2)) for place in range(1, length + 2)]
        for cost, length in zip(costs, lengths, strict=True)
    ]
    given_length = [-value for value in strings.log_probabilities]
    return string_losses(log_probabilities, strings.bounds(), given_length, eos=eos)


def test_a_perfect_model_has_no_difference(dyck: StringSet) -> None:
    scores = overall_scores(losses_of(dyck, dyck.bounds(), eos=True), INTERVALS)
    assert abs(scores.difference.value) <= 1e-9
    assert max(abs(scores.difference.low), abs(scores.difference.high)) <= 1e-9
    given_length = [-value for value in dyck.log_probabilities]
    for row in scores_by_length(losses_of(dyck, given_length, eos=True), INTERVALS):
        assert abs(row.difference.value) <= 1e-9


@pytest.mark.parametrize("eos", [True, False], ids=["with_eos", "without_eos"])
def test_bounds_are_those_of_the_corpus(dyck: StringSet, eos: bool) -> None:
    expected = lower_bound(dyck)
    name = "with_eos" if eos else "without_eos"
    losses = losses_of(dyck, dyck.bounds(), eos=eos)
    overall, rows = overall_scores(losses, INTERVALS), scores_by_length(losses, INTERVALS)
    assert overall.tokens == expected[f"tokens_{name}"]
    assert overall.bound == pytest.approx(expected[f"nats_per_token_{name}"], abs=1e-9)
    assert [f"{row.length}" for row in rows] == list(expected["by_length"])
    for row in rows:
        bounds = expected["by_length"][f"{row.length}"]
        assert (row.strings, row.tokens) == (bounds["strings"], bounds[f"tokens_{name}"])
        assert row.bound == pytest.approx(bounds[f"nats_per_token_{name}"], abs=1e-9)


def test_intervals_are_those_of_a_loop_over_resampled_sets() -> None:
    generator = np.random.default_rng(0)
    sums, counts = generator.normal(size=50), generator.integers(1, 9, size=50)
    actual = Intervals(number=2000, confidence=0.8, seed=1).of_rate(sums.tolist(), counts.tolist(), stream=0)
    rates = []
    for _ in range(2000):
        drawn = generator.integers(50, size=50)
        rates.append(sums[drawn].sum() / counts[drawn].sum())
    assert actual.value == math.fsum(sums) / counts.sum()
    spread = float(np.std(rates))
    assert (actual.low, actual.high) == pytest.approx(tuple(np.quantile(rates, [0.1, 0.9])), abs=0.15 * spread)


def test_intervals_depend_on_the_seed_alone() -> None:
    sums, counts = range(30), [7] * 30
    first = INTERVALS.of_rate(sums, counts, stream=0)
    assert INTERVALS.of_rate(sums, counts, stream=0) == first
    assert INTERVALS.of_rate(sums, counts, stream=1) != first
    assert Intervals(200, 0.9, seed=4).of_rate(sums, counts, stream=0) != first
    wider = Intervals(200, 0.99, seed=3).of_rate(sums, counts, stream=0)
    assert wider.low < first.low < first.value < first.high < wider.high


def test_each_length_has_random_numbers_of_its_own() -> None:
    costs = [[-float(i), *[0.0] * length] for length in (2, 3) for i in range(30)]
    losses = string_losses(costs, [0.0] * 60, [0.0] * 60, eos=True)
    shorter, longer = (
        np.array([row.difference.low, row.difference.high]) for row in scores_by_length(losses, INTERVALS)
    )
    assert not np.allclose(shorter * 3, longer * 4)


def test_a_set_that_is_larger_than_the_memory_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairseq_stack.evaluation.intervals.INDICES_AT_ONCE", 7)
    estimate = Intervals(200, 0.9, seed=3).of_rate([2.0] * 30, [4] * 30, stream=0)
    assert (estimate.value, estimate.low, estimate.high) == (0.5, 0.5, 0.5)
