"""The superposition stack one step at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import SuperpositionStackState, superposition_stack
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.superposition.inputs import gradients, initial_state, random_inputs, step_through


@each_golden_file("superposition_*.npz")
def test_state_golden_values_and_gradients(path: Path) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ("actions", "values")]
    readings = step_through(inputs, initial_state(inputs[1]))
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    for key, gradient in zip(
        ("actions", "values"), gradients(readings, inputs, torch.tensor(golden["cotangent"])), strict=True
    ):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_steps_equal_the_whole_sequence(length: int) -> None:
    inputs = random_inputs(3, length, 4)
    cotangent = torch.randn_like(inputs[1])
    stepped = step_through(inputs, initial_state(inputs[1]))
    whole = superposition_stack(*inputs)
    assert_normwise_close(stepped, whole, 1e-12)
    for actual, wanted in zip(gradients(stepped, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-12)


def test_state_is_immutable() -> None:
    actions, values = (x.detach() for x in random_inputs(2, 6, 3))
    state = initial_state(values)
    for t in range(5):
        _, state = state.step(actions[:, t], values[:, t])
    before = state.elements.clone()
    first, after = state.step(actions[:, 5], values[:, 5])
    after.step(actions[:, 0], values[:, 0])
    state.reorder(torch.tensor([1, 1, 0]))
    second, _ = state.step(actions[:, 5], values[:, 5])
    assert torch.equal(first, second)
    assert torch.equal(state.elements, before)
    with pytest.raises(AttributeError):
        state.elements = before  # type: ignore[misc]


@pytest.mark.parametrize(
    "index", [[2, 0, 1], [1], [0, 0, 2, 2, 1], []], ids=["permute", "shrink", "repeat", "none-left"]
)
def test_state_reorder(index: list[int]) -> None:
    actions, values = (x.detach() for x in random_inputs(3, 8, 4))
    rows = torch.tensor(index, dtype=torch.long)
    state = initial_state(values)
    for t in range(4):
        _, state = state.step(actions[:, t], values[:, t])
    continued = step_through((actions[rows, 4:], values[rows, 4:]), state.reorder(rows))
    assert_normwise_close(continued, superposition_stack(actions[rows], values[rows])[:, 4:], 1e-12)


def test_state_reorder_before_the_first_step() -> None:
    state = SuperpositionStackState.initial(batch_size=1, size=4).reorder(torch.tensor([0, 0, 0]))
    reading, _ = state.step(torch.ones(3, 3), torch.ones(3, 4))
    assert reading.shape == (3, 4)


def test_state_follows_the_default_dtype_and_takes_half_precision() -> None:
    state = SuperpositionStackState.initial(batch_size=2, size=3)
    assert state.elements.dtype == torch.float32
    half = SuperpositionStackState.initial(batch_size=2, size=3, dtype=torch.float16)
    reading, half = half.step(torch.ones(2, 3).half(), torch.ones(2, 3).half())
    assert reading.dtype == torch.float16
    assert half.elements.dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    assert SuperpositionStackState.initial(batch_size=2, size=3).elements.dtype == torch.float64


def test_depth_limit() -> None:
    """What lies deeper is lost: as with the unlimited stack whose elements are cut off after each step."""
    actions = torch.rand(2, 8, 3, dtype=torch.float64).softmax(-1).requires_grad_()
    values = torch.rand(2, 8, 4, dtype=torch.float64).requires_grad_()
    limited = SuperpositionStackState.initial(batch_size=2, size=4, dtype=torch.float64, depth_limit=3)
    state = SuperpositionStackState.initial(batch_size=2, size=4, dtype=torch.float64)
    pairs = []
    for t in range(8):
        reading, limited = limited.step(actions[:, t], values[:, t])
        expected, state = state.step(actions[:, t], values[:, t])
        state = replace(state, elements=state.elements[:, :3])
        pairs.append((reading, expected))
        assert limited.elements.shape[1] == min(t + 1, 3)
    found, wanted = (torch.stack(readings, 1) for readings in zip(*pairs, strict=True))
    assert_normwise_close(found, wanted, 1e-12)
    weights = torch.randn_like(found)
    for actual, want in zip(
        *(torch.autograd.grad((x * weights).sum(), (actions, values)) for x in (found, wanted)), strict=True
    ):
        assert_normwise_close(actual, want, 1e-12)
    with pytest.raises(ValueError, match="depth_limit: expected at least 1, got 0"):
        SuperpositionStackState.initial(batch_size=2, size=4, depth_limit=0)


def test_gradcheck_of_steps() -> None:
    inputs = [torch.rand(2, 5, size, dtype=torch.float64, requires_grad=True) for size in (3, 2)]

    def readings(actions: Tensor, values: Tensor) -> Tensor:
        state = SuperpositionStackState.initial(batch_size=2, size=2, dtype=torch.float64, depth_limit=4)
        found = []
        for t in range(5):
            reading, state = state.step(actions[:, t], values[:, t])
            found.append(reading)
        return torch.stack(found, 1)

    torch.autograd.gradcheck(readings, inputs)


def test_no_gradient_passes_a_detached_state() -> None:
    actions = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    values = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    state = SuperpositionStackState.initial(batch_size=2, size=4, dtype=torch.float64)
    _, state = state.step(actions, values)
    later = values.detach().clone().requires_grad_()
    reading, _ = state.detach().step(actions.detach(), later)
    found = torch.autograd.grad(reading.sum(), (values, later), materialize_grads=True)
    assert not found[0].any() and found[1].any()
