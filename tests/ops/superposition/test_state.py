"""The superposition stack one step at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

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
