"""Limited memory: the stack forgets what was pushed more than D steps ago."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.nondeterministic import window
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from fairseq_stack.ops.nondeterministic._tracked_columns import TrackedColumns
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.nondeterministic.inputs import initial_state, random_inputs, step_through, weighted_sum
from tests.ops.stacks import fast_backends


@pytest.mark.parametrize(("length", "num_states", "num_symbols"), [(1, 1, 1), (2, 3, 1), (19, 2, 3)])
@pytest.mark.parametrize(("std", "masked"), [(1, 0.0), (30, 0.3)])
def test_backends_equal_the_reference(
    length: int, num_states: int, num_symbols: int, std: float, masked: float
) -> None:
    inputs = random_inputs(3, length, num_states, num_symbols, std=std, masked=masked)

    def results(backend: str, steps: int) -> list[Tensor]:
        readings, weights = nondeterministic_stack(*inputs, backend=backend, window=steps, return_weights=True)
        loss = weighted_sum(readings) + weighted_sum(weights)
        return [readings, weights, *torch.autograd.grad(loss, inputs, materialize_grads=True)]

    for steps in (1, 2, 5, 18):
        expected = results("reference", steps)
        for backend in fast_backends():
            for number, (actual, wanted) in enumerate(zip(results(backend, steps), expected, strict=True)):
                scale = float(wanted.detach().abs().max()) or 1.0
                assert_normwise_close(actual, wanted, max(1e-9, 1e-14 / scale), f"window {steps}, {number}")


@pytest.mark.parametrize("std", [1, 8, 30, 60])
def test_precision_for_float32(std: float) -> None:
    """The kernels compute in float32 if that is as good, and otherwise in float64: 1e-5 of the largest gradient."""
    inputs = random_inputs(3, 30, std=std, dtype=torch.float32)
    exact = [x.detach().double().requires_grad_() for x in inputs]
    results = []
    for arguments in (inputs, exact):
        readings = nondeterministic_stack(*arguments, window=12)
        results.append([readings, *torch.autograd.grad(weighted_sum(readings.double()), arguments)])
    for actual, wanted in zip(*results, strict=True):
        assert_normwise_close(actual, wanted, 1e-5)
    *_, wide, _ = window._stack(*joined(inputs), 2, 12)
    if std != 8:  # there it depends on the sequence
        assert torch.equal(wide, torch.full_like(wide, std > 8))


def joined(inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The log weights and the vectors as the kernels take them."""
    push, replace, pop, values, bottom = (x.detach() for x in inputs)
    return (
        torch.cat([push.flatten(4).flatten(2, 3), replace.flatten(4).flatten(2, 3), pop.flatten(2, 3)], -1),
        torch.cat([bottom.expand(len(values), 1, -1), values], 1),
    )


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("length", [1, 7, 19])
def test_a_window_of_all_steps_is_unlimited_memory(length: int) -> None:
    inputs = [x.detach() for x in random_inputs(2, length)]
    whole = nondeterministic_stack(*inputs)
    longer, shorter = (step_through(inputs, initial_state(inputs, window=length + x))[0] for x in (1, 0))
    assert torch.equal(nondeterministic_stack(*inputs, window=length + 1), whole)
    assert not torch.allclose(nondeterministic_stack(*inputs, window=length)[:, -1], whole[:, -1], rtol=1e-9, atol=1e-9)
    assert_normwise_close(longer, whole, 1e-12)
    assert not torch.allclose(shorter[:, -1], whole[:, -1], rtol=1e-9, atol=1e-9)


@each_golden_file("limited/limited_*.npz")
@pytest.mark.parametrize("way", ["reference", "native", "pytorch", "steps"])
@pytest.mark.usefixtures("columns")
def test_golden_limited_memory(path: Path, way: str) -> None:
    """In segments, the state goes from one to the next; symbols are vectors of size 1 that are all 1."""
    golden = {name: torch.tensor(value) for name, value in np.load(path).items()}
    names = [name for name in ("push", "replace", "pop", "values", "bottom") if name in golden]
    ones = torch.ones(*golden["push"].shape[:2], 1, dtype=torch.float64)
    known = {"values": ones, "bottom": ones[0, 0]} | golden
    inputs = [known[name].requires_grad_() for name in ("push", "replace", "pop", "values", "bottom")]
    window = int(golden["window"])
    whole = (
        step_through(inputs, initial_state(inputs, window=window))[0]
        if way == "steps"
        else nondeterministic_stack(*inputs, backend=way, window=window)
    )
    readings = whole.flatten(2)
    assert_normwise_close(readings, golden["readings"], 1e-9)
    loss = (readings * golden["cotangent"]).sum()
    gradients = torch.autograd.grad(loss, inputs[: len(names)], materialize_grads=True)
    for name, gradient in zip(names, gradients, strict=True):
        assert_normwise_close(gradient, golden[f"grad_{name}"].expand_as(gradient), 1e-9, name)


@pytest.mark.parametrize("window", [1, 2, 5, 40])
def test_a_state_for_torch_func(window: int) -> None:
    """Steps on the kernels, which are then continued in PyTorch."""
    inputs = [x.detach() for x in random_inputs(2, 14)]
    state = initial_state(inputs, window=window)
    _, state = step_through([x[:, :11] for x in inputs[:4]], state)
    tracked = state._with(state.columns.tracked(), None)
    assert isinstance(tracked.columns, TrackedColumns)
    rest = [x[:, 11:] for x in inputs[:4]]
    assert_normwise_close(step_through(rest, tracked)[0], step_through(rest, state)[0], 1e-12)


def test_memory_of_a_state_is_limited() -> None:
    inputs = [x.detach() for x in random_inputs(1, 30)]
    state = initial_state(inputs, window=4)
    sizes = []
    for t in range(30):
        _, state = state.step(*(x[:, t] for x in inputs[:4]))
        assert isinstance(state.columns, NativeColumns)
        sizes.append(sum(column.numel() for column in state.columns.memory))
        assert state.columns.ancestors.shape[1] == len(state.columns.memory) <= 4
    assert max(sizes[10:]) == max(sizes[20:])


def test_the_window_is_checked() -> None:
    with pytest.raises(ValueError, match="window: expected at least 1, got -1"):
        nondeterministic_stack(*random_inputs(1, 2), window=-1)
    with pytest.raises(ValueError, match="window: expected at least 1, got 0"):
        NondeterministicStackState.initial(torch.zeros(3), batch_size=2, num_states=2, num_symbols=2, window=0)
