"""The queue one step at a time."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.ops import queue
from tests.helpers import assert_normwise_close, peak_of_bytes
from tests.ops.queues.inputs import compute, initial_state, random_read_strength
from tests.ops.stratification.inputs import gradients, random_inputs, step_through


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_steps_equal_the_whole_sequence(length: int) -> None:
    inputs = random_inputs(3, length, 4)
    leaves, cotangent = (*inputs, random_read_strength(inputs[2])), torch.randn_like(inputs[2])
    for amount in (1.0, 2.0, leaves[3]):
        stepped, whole = (compute(inputs, way, read_strength=amount) for way in ("state", "pytorch"))
        assert_normwise_close(stepped, whole, 1e-12)
        found, wanted = (gradients(x, leaves, cotangent) for x in (stepped, whole))
        for actual, right in zip(found, wanted, strict=True):
            assert_normwise_close(actual, right, 1e-12)


@pytest.mark.parametrize(
    "index", [[2, 0, 1], [1], [0, 0, 2, 2, 1], []], ids=["permute", "shrink", "repeat", "none-left"]
)
def test_state_reorder(index: list[int]) -> None:
    pop, push, values = (x.detach() for x in random_inputs(3, 8, 4))
    rows = torch.tensor(index, dtype=torch.long)
    state = initial_state(values)
    for t in range(4):
        _, state = state.step(pop[:, t], push[:, t], values[:, t])
    before = state.cumulative_strengths.clone(), state.values.clone()
    continued = step_through((x[rows, 4:] for x in (pop, push, values)), state.reorder(rows))
    assert_normwise_close(continued, queue(pop[rows], push[rows], values[rows])[:, 4:], 1e-12)
    assert torch.equal(state.cumulative_strengths, before[0])
    assert torch.equal(state.values, before[1])


def test_no_gradient_passes_a_detached_state() -> None:
    inputs = random_inputs(2, 6, 3)
    state = initial_state(inputs[2])
    for t in range(3):
        _, state = state.step(*(x[:, t] for x in inputs))
    stepped = step_through((x[:, 3:] for x in inputs), state.detach())
    whole = queue(*(torch.cat([x[:, :3].detach(), x[:, 3:]], 1) for x in inputs))[:, 3:]
    cotangent = torch.randn_like(whole)
    found, wanted = (gradients(x, inputs, cotangent) for x in (stepped, whole))
    for actual, right in zip(found, wanted, strict=True):
        assert_normwise_close(actual, right, 1e-12)


def test_training_takes_memory_for_the_items_and_the_strengths() -> None:
    """O(n^2 + n m), as for the stack."""
    length, size = 100, 300
    leaves = [x.detach().requires_grad_() for x in random_inputs(1, length, size)]
    values = 8 * length * size
    peak = peak_of_bytes(lambda: step_through(leaves, initial_state(leaves[2])).sum().backward())
    assert values < peak < 12 * values
