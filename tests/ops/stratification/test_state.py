"""The stratification stack one step at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import StratificationStackState, stratification_stack
from tests.helpers import assert_normwise_close, peak_of_bytes
from tests.ops.stratification.inputs import gradients, initial_state, random_inputs, step_through

pytestmark = pytest.mark.usefixtures("steps")


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_steps_equal_the_whole_sequence(length: int) -> None:
    inputs = random_inputs(3, length, 4)
    cotangent = torch.randn_like(inputs[2])
    stepped = step_through(inputs, initial_state(inputs[2]))
    whole = stratification_stack(*inputs)
    assert_normwise_close(stepped, whole, 1e-12)
    for actual, wanted in zip(gradients(stepped, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-12)


def test_state_is_immutable() -> None:
    pop, push, values = (x.detach() for x in random_inputs(2, 6, 3))
    state = initial_state(values)
    for t in range(5):
        _, state = state.step(pop[:, t], push[:, t], values[:, t])
    before = state.cumulative_strengths.clone(), state.values.clone()
    first, after = state.step(pop[:, 5], push[:, 5], values[:, 5])
    after.step(pop[:, 0], push[:, 0], values[:, 0])
    state.reorder(torch.tensor([1, 1, 0]))
    second, _ = state.step(pop[:, 5], push[:, 5], values[:, 5])
    assert torch.equal(first, second)
    assert torch.equal(state.cumulative_strengths, before[0])
    assert torch.equal(state.values, before[1])
    with pytest.raises(AttributeError):
        state.values = before[1]  # type: ignore[misc]


@pytest.mark.parametrize(
    "index", [[2, 0, 1], [1], [0, 0, 2, 2, 1], []], ids=["permute", "shrink", "repeat", "none-left"]
)
def test_state_reorder(index: list[int]) -> None:
    pop, push, values = (x.detach() for x in random_inputs(3, 8, 4))
    rows = torch.tensor(index, dtype=torch.long)
    state = initial_state(values)
    for t in range(4):
        _, state = state.step(pop[:, t], push[:, t], values[:, t])
    continued = step_through((x[rows, 4:] for x in (pop, push, values)), state.reorder(rows))
    expected = stratification_stack(pop[rows], push[rows], values[rows])[:, 4:]
    assert_normwise_close(continued, expected, 1e-12)


def test_state_follows_the_default_dtype_and_takes_half_precision() -> None:
    state = StratificationStackState.initial(batch_size=2, size=3)
    assert state.values.dtype == state.cumulative_strengths.dtype == torch.float32
    half = StratificationStackState.initial(batch_size=2, size=3, dtype=torch.bfloat16)
    ones = torch.ones(2, dtype=torch.bfloat16)
    reading, half = half.step(ones, ones, torch.ones(2, 3, dtype=torch.bfloat16))
    assert reading.dtype == torch.bfloat16
    assert half.values.dtype == half.cumulative_strengths.dtype == torch.float32


def test_gradcheck_of_steps() -> None:
    inputs = random_inputs(2, 5, 2)

    def readings(*inputs: Tensor) -> Tensor:
        return step_through(inputs, initial_state(inputs[2]))

    torch.autograd.gradcheck(readings, inputs)
    torch.autograd.gradgradcheck(readings, inputs)


def after(inputs: tuple[Tensor, ...], state: StratificationStackState) -> StratificationStackState:
    """The state after the steps."""
    for pop, push, value in zip(*(x.unbind(1) for x in inputs), strict=True):
        _, state = state.step(pop, push, value)
    return state


def assert_same_gradients(stepped: Tensor, whole: Tensor, *leaves: Tensor) -> None:
    assert_normwise_close(stepped, whole, 1e-12)
    cotangent = torch.randn_like(whole)
    for actual, wanted in zip(gradients(stepped, leaves, cotangent), gradients(whole, leaves, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_steps_on_cuda_equal_the_whole_sequence_on_the_cpu() -> None:
    inputs = random_inputs(3, 20, 4)
    on_device = [x.detach().cuda().requires_grad_() for x in inputs]
    stepped = step_through(on_device, initial_state(on_device[2]))
    assert stepped.is_cuda
    assert_same_gradients(stepped.cpu(), stratification_stack(*(x.cpu() for x in on_device)), *on_device)


def test_a_state_continued_in_several_ways() -> None:
    inputs, others = random_inputs(2, 7, 3), random_inputs(2, 7, 3)
    state = after(tuple(x[:, :4] for x in inputs), initial_state(inputs[2]))
    one, other = (step_through((x[:, 4:] for x in some), state) for some in (inputs, others))
    mixed = [torch.cat([x[:, :4], y[:, 4:]], 1) for x, y in zip(inputs, others, strict=True)]
    whole = [stratification_stack(*some)[:, 4:] for some in (inputs, mixed)]
    assert_same_gradients(torch.cat([one, other], 1), torch.cat(whole, 1), *inputs, *others)


def test_a_graph_is_differentiated_several_times() -> None:
    inputs = random_inputs(2, 6, 3)
    loss = step_through(inputs, initial_state(inputs[2])).square().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(loss, inputs), strict=True):
        assert torch.equal(one, other)


def test_gradients_of_later_steps_alone() -> None:
    """Steps without gradients, a reordering, and then steps with gradients and another reordering."""
    inputs, rows = random_inputs(3, 9, 4), torch.tensor([2, 0, 0, 1])
    state = after(tuple(x[:, :3].detach() for x in inputs), initial_state(inputs[2]))
    state = after(tuple(x[rows, 3:6] for x in inputs), state.reorder(rows)).reorder(rows)
    stepped = step_through((x[rows][rows, 6:] for x in inputs), state)
    whole = stratification_stack(*(torch.cat([x[:, :3].detach(), x[:, 3:]], 1)[rows][rows] for x in inputs))
    assert_same_gradients(stepped, whole[:, 6:], *inputs)


def test_no_gradient_passes_a_detached_state() -> None:
    inputs = random_inputs(2, 6, 3)
    state = after(tuple(x[:, :3] for x in inputs), initial_state(inputs[2])).detach()
    stepped = step_through((x[:, 3:] for x in inputs), state)
    whole = stratification_stack(*(torch.cat([x[:, :3].detach(), x[:, 3:]], 1) for x in inputs))
    assert_same_gradients(stepped, whole[:, 3:], *inputs)


def test_gradient_of_the_items_of_a_state() -> None:
    inputs = random_inputs(2, 4, 3)
    state = after(inputs, initial_state(inputs[2]))
    assert torch.equal(state.values, inputs[2])
    (found,) = torch.autograd.grad((2 * state.values).sum(), inputs[2])
    assert torch.equal(found, torch.full_like(found, 2))


def test_the_caller_may_overwrite_what_was_passed() -> None:
    pop, push, values = (x.detach() for x in random_inputs(2, 5, 3))
    state, value, readings = initial_state(values), torch.empty(2, 3, dtype=values.dtype), []
    for t in range(5):
        reading, state = state.step(pop[:, t], push[:, t], value.copy_(values[:, t]))
        readings.append(reading)
    assert_normwise_close(torch.stack(readings, 1), stratification_stack(pop, push, values), 1e-12)


def test_training_takes_memory_for_the_items_and_the_strengths() -> None:
    """O(n^2 + n m): if each step kept the items before it, they would take 50 times the memory of the last."""
    length, size = 100, 300
    inputs = random_inputs(1, length, size)
    leaves = [x.detach().requires_grad_() for x in inputs]

    def train() -> None:
        step_through(leaves, initial_state(leaves[2])).sum().backward()

    values = 8 * length * size
    assert values < peak_of_bytes(train) < 12 * values
