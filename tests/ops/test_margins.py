"""The compiled kernels read and write nothing beyond their arrays, and write all of what they return."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import (
    NondeterministicStackState,
    StratificationStackState,
    SuperpositionStackState,
    nondeterministic_stack,
    superposition_stack,
)
from fairseq_stack.ops._native import Library
from tests.helpers import threads
from tests.ops.margins import Guard, run_between_margins

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def between_margins(patch: pytest.MonkeyPatch, mistake: Callable[[Any], None] | None = None) -> list[str]:
    """From here on, run kernels between margins; returns the list of those that are run."""
    made = []

    def run(library: Library, function: str, call: Any, **sizes: int) -> None:
        run_between_margins(library, function, call, **sizes, mistake=mistake)
        made.append(function)

    patch.setattr(Library, "run", run)
    return made


def assert_same(actual: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(actual, expected, strict=True):
        assert torch.equal(one, other)
        assert not one.isnan().any()


# ---------------------------------------------------------------- superposition stack

SUPERPOSITIONS = [(1, 0, 3), (1, 1, 1), (2, 3, 5), (3, 17, 7), (1, 33, 65), (2, 131, 3), (1, 9, 5, 1), (2, 131, 7, 3)]


def read_superposition(
    dtype: torch.dtype, sequences: int, length: int, size: int, depth_limit: int | None = None
) -> list[Tensor]:
    torch.manual_seed(0)
    actions = torch.rand(sequences, length, 3, dtype=dtype).softmax(-1).requires_grad_()
    values = torch.randn(sequences, length, size, dtype=dtype).requires_grad_()
    readings = superposition_stack(actions, values, depth_limit=depth_limit, backend="native")
    return [readings, *torch.autograd.grad((readings * torch.randn_like(readings)).sum(), (actions, values))]


@DTYPES
@pytest.mark.parametrize("size", SUPERPOSITIONS)
@pytest.mark.usefixtures("instruction_set")
def test_superposition(size: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read_superposition(dtype, *size)
    made = between_margins(monkeypatch)
    assert_same(read_superposition(dtype, *size), expected)
    assert made == ["fss_sup_forward", "fss_sup_backward"]


# ---------------------------------------------------------------- nondeterministic stack

# Sequences, n, Q, S; and which share of the transitions is forbidden in every other sequence
NONDETERMINISTICS = [(1, 1, 1, 1, 0.0), (3, 7, 2, 3, 0.3), (2, 17, 3, 3, 0.3), (1, 33, 1, 2, 0.0), (2, 16, 3, 1, 0.5)]


def read_nondeterministic(
    dtype: torch.dtype, sequences: int, length: int, num_states: int, num_symbols: int, forbidden: float
) -> list[Tensor]:
    torch.manual_seed(0)
    source, targets = (sequences, length, num_states, num_symbols), (num_states, num_symbols)
    log_weights = [torch.randn(*source, *target, dtype=dtype) for target in (targets, targets, (num_states,))]
    for x in log_weights:
        x[::2].masked_fill_(torch.rand(x[::2].shape) < forbidden, -torch.inf)
    values, bottom = torch.randn(sequences, length, 3, dtype=dtype), torch.randn(3, dtype=dtype)
    inputs = [x.requires_grad_() for x in (*log_weights, values, bottom)]
    readings, weights = nondeterministic_stack(*inputs, backend="native", return_weights=True)
    loss = (readings * torch.randn_like(readings)).sum() + (weights * torch.randn_like(weights)).sum()
    return [readings, weights, *torch.autograd.grad(loss, inputs)]


@DTYPES
@pytest.mark.parametrize("size", NONDETERMINISTICS)
@pytest.mark.usefixtures("instruction_set")
def test_nondeterministic(
    size: tuple[int, int, int, int, float], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for count in (1, 4):  # four threads share each sequence
        with threads(count), monkeypatch.context() as patch:
            expected = read_nondeterministic(dtype, *size)
            made = between_margins(patch)
            assert_same(read_nondeterministic(dtype, *size), expected)
        assert made == ["fss_nd_forward", "fss_nd_backward"]


def step_nondeterministic(
    steps: int, num_states: int, num_symbols: int, size: int, window: int | None, *, train: bool
) -> list[Tensor]:
    """Beams that branch and end on the way, and with ``train`` their gradients."""
    torch.manual_seed(0)
    source, targets = (3, num_states, num_symbols), (num_states, num_symbols)
    shapes = [(*source, *target) for target in (targets, targets, (num_states,))] + [(3, size)]
    bottom, start = torch.randn(size).double(), torch.randn(source).double()
    inputs = [torch.randn(steps, *shape).double().requires_grad_(train) for shape in shapes]
    leaves = [*inputs, bottom.requires_grad_(train), start.requires_grad_(train)]
    state = NondeterministicStackState.initial(
        bottom, batch_size=3, num_states=num_states, num_symbols=num_symbols, window=window, start=start
    )
    readings = []
    for t in range(steps):
        reading, state = state.step(*(x[t] for x in inputs))
        readings.append(reading)
        if t % 3 == 1:
            state = state.reorder(torch.randint(3, (3,)))
    if train:
        loss = (torch.stack(readings) * torch.randn(steps, *readings[0].shape).double()).sum()
        readings += torch.autograd.grad(loss, leaves)
    return readings


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("size", [(18, 1, 1, 1), (10, 2, 3, 5), (5, 3, 3, 2)])
@pytest.mark.usefixtures("instruction_set")
def test_steps(size: tuple[int, int, int, int], window: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for train in (False, True):
        expected = step_nondeterministic(*size, window, train=train)
        with monkeypatch.context() as patch:
            made = between_margins(patch)
            assert_same(step_nondeterministic(*size, window, train=train), expected)
        assert made == ["fss_nd_step"] * (size[0] + 1) + ["fss_nd_step_backward"] * (size[0] + 1) * train


def step_superposition(dtype: torch.dtype, steps: int, size: int, depth_limit: int | None) -> list[Tensor]:
    torch.manual_seed(0)
    actions, values = torch.rand(2, steps, 3).to(dtype), torch.rand(2, steps, size).to(dtype)
    inputs = [actions.requires_grad_(), values.requires_grad_()]
    state = SuperpositionStackState.initial(batch_size=2, size=size, dtype=dtype, depth_limit=depth_limit)
    readings = []
    for t in range(steps):
        reading, state = state.step(actions[:, t], values[:, t])
        readings.append(reading)
    return [*readings, *torch.autograd.grad(torch.stack(readings).square().sum(), inputs)]


@DTYPES
@pytest.mark.parametrize("size", [(1, 1, None), (9, 3, None), (9, 17, 4), (5, 2, 1)])
@pytest.mark.usefixtures("instruction_set")
def test_steps_of_superposition(
    size: tuple[int, int, int | None], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = step_superposition(dtype, *size)
    made = between_margins(monkeypatch)
    assert_same(step_superposition(dtype, *size), expected)
    assert made == ["fss_sup_step_forward"] * size[0] + ["fss_sup_step_backward"] * size[0]


def step_stratification(dtype: torch.dtype, steps: int, size: int) -> list[Tensor]:
    torch.manual_seed(0)
    inputs = [torch.rand(2, steps, *shape).to(dtype).requires_grad_() for shape in ((), (), (size,))]
    state = StratificationStackState.initial(batch_size=2, size=size, dtype=dtype)
    readings = []
    for t in range(steps):
        reading, state = state.step(*(x[:, t] for x in inputs))
        readings.append(reading)
    return [*readings, *torch.autograd.grad(torch.stack(readings).square().sum(), inputs)]


@DTYPES
@pytest.mark.parametrize("size", [(1, 1), (9, 3), (5, 17)])
@pytest.mark.usefixtures("instruction_set")
def test_steps_of_stratification(size: tuple[int, int], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = step_stratification(dtype, *size)
    made = between_margins(monkeypatch)
    assert_same(step_stratification(dtype, *size), expected)
    assert made == ["fss_strat_step_forward"] * size[0] + ["fss_strat_step_backward"] * size[0]


def read_windowed(
    dtype: torch.dtype, steps: int, num_states: int, num_symbols: int, size: int, window: int, std: float
) -> list[Tensor]:
    torch.manual_seed(0)
    source, targets = (2, steps, num_states, num_symbols), (num_states, num_symbols)
    shapes = [(*source, *target) for target in (targets, targets, (num_states,))] + [(2, steps, size), (size,)]
    inputs = [(std * torch.randn(*shape)).to(dtype).requires_grad_() for shape in shapes]
    readings = nondeterministic_stack(*inputs, backend="native", window=window)
    return [readings, *torch.autograd.grad((readings * torch.randn_like(readings)).sum(), inputs)]


@DTYPES
@pytest.mark.parametrize(
    "size", [(40, 1, 1, 1, 1, 1), (40, 1, 2, 3, 9, 1), (21, 2, 3, 5, 17, 1), (9, 3, 3, 2, 9, 30), (19, 2, 2, 1, 8, 1)]
)
@pytest.mark.usefixtures("instruction_set")
def test_windows(
    size: tuple[int, int, int, int, int, float], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read_windowed(dtype, *size)
    made = between_margins(monkeypatch)
    assert_same(read_windowed(dtype, *size), expected)
    assert made == ["fss_nd_window_forward", "fss_nd_window_backward"]


# ---------------------------------------------------------------- whether all that would be noticed


@pytest.mark.parametrize("item", [1, 4, 8])
@pytest.mark.parametrize("aligned", [False, True])
def test_margins_notice_one_element(item: int, aligned: bool) -> None:
    for at, side in ((-item, "before"), (5 * item, "behind")):
        guard = Guard("array", item, 5, aligned=aligned)
        guard.check_margins()
        beside = (ctypes.c_uint8 * item).from_address(guard.address + at)
        beside[0] ^= 1
        with pytest.raises(AssertionError, match=f"array: 1 bytes {side} the array"):
            guard.check_margins()


def larger(field: str) -> Callable[[Any], None]:
    return lambda call: setattr(call, field, getattr(call, field) + 1)


@DTYPES
@pytest.mark.parametrize("field", ["sequences", "length", "size"])
@pytest.mark.usefixtures("instruction_set")
def test_superposition_that_is_too_large_by_one(
    field: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_margins(monkeypatch, larger(field))
    with pytest.raises(AssertionError, match=r"readings: \d+ bytes behind the array"):
        read_superposition(dtype, 1, 5, 1)


@DTYPES
@pytest.mark.usefixtures("instruction_set")
def test_nondeterministic_that_is_too_large_by_one(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    between_margins(monkeypatch, larger("length"))
    with pytest.raises(AssertionError, match=r"weights: \d+ bytes behind the array"):
        read_nondeterministic(dtype, 1, 3, 1, 1, 0.0)


@pytest.mark.usefixtures("instruction_set")
def test_steps_that_are_too_large_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    between_margins(monkeypatch, larger("beams"))
    with pytest.raises(AssertionError, match=r"(inexact|column 0): \d+ bytes behind the array"):
        step_nondeterministic(1, 1, 1, 1, None, train=False)


def one_further(field: str, item: int) -> Callable[[Any], None]:
    return lambda call: setattr(call, field, getattr(call, field) + item)


@DTYPES
@pytest.mark.parametrize(
    ("read", "size", "field"),
    [
        (read_superposition, (1, 5, 3), "values"),
        (read_superposition, (1, 5, 3), "actions"),
        (read_nondeterministic, (1, 5, 1, 1, 0.0), "push"),
        (read_nondeterministic, (1, 5, 1, 1, 0.0), "replace"),
        (read_nondeterministic, (1, 5, 1, 1, 0.0), "pop"),
    ],
)
@pytest.mark.usefixtures("instruction_set")
def test_reading_one_element_beyond_an_array(
    read: Any, size: tuple[Any, ...], field: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    between_margins(monkeypatch, one_further(field, dtype.itemsize))
    with pytest.raises(AssertionError, match="numbers are NaN"):
        read(dtype, *size)
