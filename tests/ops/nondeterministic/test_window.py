"""Limited memory: the stack forgets what was pushed more than D steps ago."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from fairseq_stack.ops.nondeterministic._tracked_columns import TrackedColumns
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.nondeterministic.stepping import random_inputs, step_through, weighted_sum


def stepped(inputs: Sequence[Tensor], window: int | None) -> Tensor:
    batch_size, _, num_states, num_symbols = inputs[0].shape[:4]
    state = NondeterministicStackState.initial(
        inputs[4], batch_size=batch_size, num_states=num_states, num_symbols=num_symbols, window=window
    )
    return step_through(inputs, state)[0]


def by_definition(inputs: Sequence[Tensor], window: int) -> Tensor:
    """Eqs. 21-29 for a batch of one, step by step in real numbers, with gamma[i -> t] = 0 for t - i > D."""
    push, replace, pop = (x[0].exp() for x in inputs[:3])
    vectors = torch.cat([inputs[4][None], inputs[3][0]])
    length, num_states, num_symbols = push.shape[:3]
    source = num_states, num_symbols
    nothing = push.new_zeros(*source, *source)
    one = torch.zeros(source, dtype=push.dtype)
    one[0, 0] = 1
    gamma = {(-1, 0): one[:, :, None, None] * one}
    alpha = {-1: one, 0: one}
    readings = []
    for t in range(1, length + 1):
        step = t - 1
        for i in range(-1, t):
            if t - i > window:
                continue
            if i == t - 1:
                gamma[i, t] = push[step]
                continue
            total = torch.einsum("qxsz,szry->qxry", gamma.get((i, t - 1), nothing), replace[step])
            for k in range(i + 1, t - 1):
                popped = torch.einsum("uysz,szr->uyr", gamma.get((k, t - 1), nothing), pop[step])
                total = total + torch.einsum("qxuy,uyr->qxry", gamma.get((i, k), nothing), popped)
            gamma[i, t] = total
        tops = [(i, torch.einsum("qx,qxry->ry", alpha[i], gamma[i, t])) for i in range(-1, t) if t - i <= window]
        alpha[t] = torch.stack([top for _, top in tops]).sum(0)
        weighed = torch.stack([top[..., None] * vectors[i + 1] for i, top in tops]).sum(0)
        readings.append(weighed / alpha[t].sum())
    return torch.stack(readings)[None]


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_steps_equal_the_definition(length: int, window: int) -> None:
    inputs = random_inputs(1, length, 2, 2)
    found, wanted = stepped(inputs, window), by_definition(inputs, window)
    assert_normwise_close(found, wanted, 1e-12)
    gradients = (torch.autograd.grad(weighted_sum(x), inputs, materialize_grads=True) for x in (found, wanted))
    for actual, want in zip(*gradients, strict=True):
        assert_normwise_close(actual, want, 1e-9)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("length", [1, 7, 19])
def test_a_window_of_all_steps_is_unlimited_memory(length: int) -> None:
    inputs = [x.detach() for x in random_inputs(2, length)]
    whole = nondeterministic_stack(*inputs)
    assert_normwise_close(stepped(inputs, length + 1), whole, 1e-12)
    if length > 2:
        assert not torch.allclose(stepped(inputs, length - 1)[:, -1], whole[:, -1], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("columns")
@each_golden_file("limited/limited_*.npz")
def test_golden_limited_memory(path: Path) -> None:
    """In segments, the state goes from one to the next; symbols are vectors of size 1 that are all 1."""
    golden = {name: torch.tensor(value) for name, value in np.load(path).items()}
    names = [name for name in ("push", "replace", "pop", "values", "bottom") if name in golden]
    ones = torch.ones(*golden["push"].shape[:2], 1, dtype=torch.float64)
    given = {"values": ones, "bottom": ones[0, 0]} | golden
    inputs = [given[name].requires_grad_() for name in ("push", "replace", "pop", "values", "bottom")]
    readings = stepped(inputs, int(golden["window"])).flatten(2)
    assert_normwise_close(readings, golden["readings"], 1e-9)
    loss = (readings * golden["cotangent"]).sum()
    gradients = torch.autograd.grad(loss, inputs[: len(names)], materialize_grads=True)
    for name, gradient in zip(names, gradients, strict=True):
        assert_normwise_close(gradient, golden[f"grad_{name}"].expand_as(gradient), 1e-9, name)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_a_state_for_torch_func(window: int) -> None:
    """Steps on the kernels, which are then continued in PyTorch."""
    inputs = [x.detach() for x in random_inputs(2, 14)]
    state = NondeterministicStackState.initial(inputs[4], batch_size=2, num_states=2, num_symbols=3, window=window)
    _, state = step_through([x[:, :11] for x in inputs[:4]], state)
    tracked = state._with(state.columns.tracked())
    assert isinstance(tracked.columns, TrackedColumns)
    rest = [x[:, 11:] for x in inputs[:4]]
    assert_normwise_close(step_through(rest, tracked)[0], step_through(rest, state)[0], 1e-12)


def test_memory_of_a_state_is_limited() -> None:
    inputs = [x.detach() for x in random_inputs(1, 30)]
    state = NondeterministicStackState.initial(inputs[4], batch_size=1, num_states=2, num_symbols=3, window=4)
    sizes = []
    for t in range(30):
        _, state = state.step(*(x[:, t] for x in inputs[:4]))
        assert isinstance(state.columns, NativeColumns)
        sizes.append(sum(column.numel() for column in state.columns.memory))
        assert state.columns.ancestors.shape[1] == len(state.columns.memory) <= 4
    assert max(sizes[10:]) == max(sizes[20:])


def test_an_undefined_log_weight_spoils_all_later_readings() -> None:
    inputs = [x.detach() for x in random_inputs(1, 12)]
    inputs[0][0, 4, 0, 0, 0, 0] = torch.nan
    readings = stepped(inputs, 2)
    assert readings[:, :4].isfinite().all()
    assert readings[:, 4:].isnan().all()


def test_the_window_is_checked() -> None:
    with pytest.raises(ValueError, match="window: expected at least 1, got 0"):
        NondeterministicStackState.initial(torch.zeros(3), batch_size=2, num_states=2, num_symbols=2, window=0)
