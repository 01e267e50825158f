"""The best runs of the automaton of a nondeterministic stack, against all its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import Run, best_runs
from fairseq_stack.ops.nondeterministic import _excursions
from tests.helpers import hostile
from tests.ops.nondeterministic.inputs import random_inputs
from tests.ops.nondeterministic.runs import EnumeratedRun, enumerated_runs

ALL = 10**6


def log_weights(batch_size: int, length: int, num_states: int, num_symbols: int, masked: float = 0.0) -> list[Tensor]:
    return [x.detach() for x in random_inputs(batch_size, length, num_states, num_symbols, masked=masked)[:3]]


def as_enumerated(run: Run) -> EnumeratedRun:
    steps = tuple(
        (x.operation, (*x.source, x.state) if x.symbol is None else (*x.source, x.state, x.symbol)) for x in run.steps
    )
    stacks = tuple(tuple((item.symbol, item.pushed) for item in stack) for stack in run.stacks())
    return EnumeratedRun(run.log_weight, steps, stacks)


def check(runs: list[Run], expected: Sequence[EnumeratedRun], count: int) -> None:
    """The runs are different ones of the expected, with their weights, and no other one is better."""
    of_steps = {(x.stacks[0], x.steps): x for x in expected}
    actual = [as_enumerated(run) for run in runs]
    assert len({(x.stacks[0], x.steps) for x in actual}) == len(actual) == min(count, len(expected))
    for x in actual:
        wanted = of_steps[x.stacks[0], x.steps]
        assert x.stacks == wanted.stacks
        assert x.log_weight == pytest.approx(wanted.log_weight, abs=1e-12)
    best = sorted((x.log_weight for x in expected), reverse=True)[:count]
    assert [x.log_weight for x in actual] == pytest.approx(best, abs=1e-12)


def enumerated(inputs: Sequence[Tensor], number: int) -> list[EnumeratedRun]:
    return list(enumerated_runs([x[number] for x in inputs]))


@pytest.mark.parametrize(
    ("length", "num_states", "num_symbols"),
    [(0, 2, 2), (1, 2, 3), (3, 2, 2), (4, 1, 3), hostile(5, 2, 1), hostile(6, 2, 1)],
)
@pytest.mark.parametrize("masked", [0.0, 0.5])
@pytest.mark.parametrize("count", [1, 10, ALL])
def test_enumeration_of_all_runs(length: int, num_states: int, num_symbols: int, masked: float, count: int) -> None:
    inputs = log_weights(2, length, num_states, num_symbols, masked)
    for number, runs in enumerate(best_runs(*inputs, count=count)):
        check(runs, enumerated(inputs, number), count)


@pytest.mark.parametrize("count", [1, 7, ALL])
@pytest.mark.parametrize("largest", [0, 1])
def test_ties(count: int, largest: int) -> None:
    """Log weights of 0, or of 0 and 1, so that many runs have the same weight; some are forbidden."""
    inputs = [torch.randint_like(x, 0, largest + 1) + x.masked_fill(x > -9, 0) for x in log_weights(2, 4, 2, 2, 0.3)]
    for number, runs in enumerate(best_runs(*inputs, count=count)):
        check(runs, enumerated(inputs, number), count)


def test_more_sequences_than_are_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_excursions, "_LARGEST", 40)
    inputs = log_weights(5, 3, 1, 2)
    for number, runs in enumerate(best_runs(*inputs, count=3)):
        check(runs, enumerated(inputs, number), 3)


def test_prefixes() -> None:
    inputs = log_weights(5, 4, 2, 2)
    prefixes = best_runs(*inputs, count=4, lengths=range(5))
    for length, runs in enumerate(prefixes):
        check(runs, enumerated([x[:, :length] for x in inputs], length), 4)


def test_part_of_a_string_from_any_configuration() -> None:
    inputs = [x[:, 2:5] for x in log_weights(2, 6, 2, 2)]
    start = torch.randn(2, 2, 2, dtype=torch.float64)
    start[0, 0, 0] = -torch.inf
    for number, runs in enumerate(best_runs(*inputs, start=start, count=6)):
        starts = [((q, x), start[number, q, x].item()) for q in range(2) for x in range(2)]
        check(runs, list(enumerated_runs([x[number] for x in inputs], starts=starts)), 6)


def test_no_run() -> None:
    """The first sequence may only pop, which nothing can be done with; the second has one run."""
    push, replace, pop = log_weights(2, 3, 2, 2)
    push[:], replace[:] = -torch.inf, -torch.inf
    push[1, 0, 0, 0, 1, 1] = -3
    pop[1, 1, 1, 1, 0] = -1
    replace[1, 2, 0, 0, 0, 0] = 0.5
    none, (run,) = best_runs(push, replace, pop, count=5)
    assert none == []
    assert run.log_weight == -3.5
    assert [step.operation for step in run.steps] == ["push", "pop", "replace"]
    assert run.stacks() == [((0, 0),), ((0, 0), (1, 1)), ((0, 0),), ((0, 0),)]


def test_deep_runs_of_long_strings() -> None:
    """Push 0 or 1, then pop it again: one run has the weight 1, as deep as the string allows."""
    half, length = 60, 120
    symbols = torch.randint(2, (half,)).tolist()
    push, replace, pop = (torch.full_like(x, -9.0) for x in log_weights(1, length, 2, 3))
    for t, symbol in enumerate(symbols):
        push[0, t, 0, :, 0, symbol + 1] = 0
        pop[0, length - 1 - t, :, symbol + 1, 1] = 0
    (run, second), *_ = best_runs(push, replace, pop, count=2)
    assert run.log_weight == 0 and second.log_weight == -9
    assert [step.symbol for step in run.steps[:half]] == [symbol + 1 for symbol in symbols]
    assert [len(stack) for stack in run.stacks()] == [*range(1, half + 2), *range(half, 0, -1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_narrow_dtypes_are_computed_in_float64(dtype: torch.dtype) -> None:
    inputs = [x.to(dtype) for x in log_weights(1, 4, 2, 2)]
    assert best_runs(*inputs, count=9) == best_runs(*(x.double() for x in inputs), count=9)


def test_no_sequences() -> None:
    assert best_runs(*log_weights(0, 3, 2, 2)) == []


def test_mistakes() -> None:
    push, replace, pop = log_weights(2, 3, 2, 2)
    undefined = pop.clone()
    undefined[1, 2, 1, 1, 0] = math.nan
    for keywords, message in (
        ({"pop": undefined}, "pop: expected log weights that are numbers or -inf, got NaN or inf"),
        ({"pop": pop + torch.inf}, "pop: expected log weights that are numbers or -inf, got NaN or inf"),
        ({"pop": pop[:, 1:]}, "pop: expected shape"),
        ({"count": 0}, "count: expected at least 1, got 0"),
        ({"lengths": [3]}, "lengths: expected 2 numbers from 0 to 3, got [3]"),
        ({"lengths": [3, 4]}, "lengths: expected 2 numbers from 0 to 3, got [3, 4]"),
        ({"start": torch.zeros(2, 2, 3, dtype=torch.float64)}, "start: expected shape"),
    ):
        arguments: dict[str, object] = {"push": push, "replace": replace, "pop": pop, **keywords}
        with pytest.raises(ValueError) as error:
            best_runs(**arguments)  # type: ignore[arg-type]
        assert str(error.value).startswith(message)
