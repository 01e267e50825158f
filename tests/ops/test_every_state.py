"""What holds for the state of every stack and queue: immutable, reordered, continued, detached, differentiated."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.helpers import assert_agree, assert_normwise_close, peak_of_bytes
from tests.ops.stacks import STACKS, Way, ways


def after(way: Way, inputs: list[Tensor], steps: int) -> Any:
    """The state after the first steps."""
    begin = way.begin(inputs)
    return way.stack.step_through(way.stack.part(inputs, slice(steps)), begin)[1] if steps else begin


def continued(way: Way, state: Any, inputs: list[Tensor], steps: slice, rows: Tensor | slice = slice(None)) -> Tensor:
    """The readings of steps after a state."""
    return way.stack.step_through(way.stack.part(inputs, steps, rows), state)[0]


@ways(reference=False, ops=False)
def test_it_is_immutable(way: Way) -> None:
    inputs = [x.detach() for x in way.stack.random_inputs(3, 9, 4)]
    state = after(way, inputs, 5)
    first = continued(way, state, inputs, slice(5, 7))
    continued(way, state, inputs, slice(0, 4))
    rows = torch.tensor([1, 1, 0])
    continued(way, state.reorder(rows), inputs, slice(6, 9), rows)
    assert torch.equal(continued(way, state, inputs, slice(5, 7)), first)
    for name in vars(state):
        with pytest.raises(AttributeError):
            setattr(state, name, None)


@ways(reference=False, ops=False)
def test_reorder(way: Way) -> None:
    """Rows are permuted, left out and repeated, and there may be none."""
    inputs = [x.detach() for x in way.stack.random_inputs(3, 8, 4)]
    for cut in (0, 1, 4):
        state = after(way, inputs, cut)
        for index in ([2, 0, 1], [1], [0, 0, 2, 2, 1], []):
            rows = torch.tensor(index, dtype=torch.long)
            readings = continued(way, state.reorder(rows), inputs, slice(cut, None), rows)
            expected = way.stack.compute(*way.stack.part(inputs, slice(None), rows), backend="reference")
            assert_normwise_close(readings, expected[:, cut:], 1e-12, f"after {cut} steps")


@ways(reference=False, ops=False)
def test_gradients_of_branches(way: Way) -> None:
    """A state is continued in several ways, of which one is reordered."""
    inputs, others = way.stack.random_inputs(2, 7, 3), way.stack.random_inputs(2, 7, 3)
    rows = torch.tensor([1, 0, 1])
    state = after(way, inputs, 4)
    branches = [
        continued(way, state, inputs, slice(4, None)),
        continued(way, state.reorder(rows), others, slice(4, None), rows),
    ]
    stepped = zip(inputs[: way.stack.num_stepped], others, strict=False)
    mixed = [torch.cat([x[:, :4], y[:, 4:]], 1) for x, y in stepped] + inputs[way.stack.num_stepped :]
    mixed = way.stack.part(mixed, slice(None), rows)
    wanted = [way.stack.compute(*x, backend="reference")[:, 4:] for x in (inputs, mixed)]
    assert_agree(torch.cat(branches), torch.cat(wanted), [*inputs, *others], 1e-12, way.stack.tolerance)


@ways(reference=False, ops=False)
@pytest.mark.parametrize("detached", [True, False], ids=["detached", "no-grad"])
def test_gradients_of_later_steps_alone(detached: bool, way: Way) -> None:
    """Steps whose gradients are cut off or not computed, a reordering, and then steps with gradients."""
    inputs, rows = way.stack.random_inputs(3, 9, 4), torch.tensor([2, 0, 0, 1])
    if detached:
        state = after(way, inputs, 5).detach()
    else:
        with torch.no_grad():
            state = after(way, inputs, 5)
    actual = continued(way, state.reorder(rows), inputs, slice(5, None), rows)
    stepped = [torch.cat([x[:, :5].detach(), x[:, 5:]], 1) for x in inputs[: way.stack.num_stepped]]
    constant = stepped + [x.detach() for x in inputs[way.stack.num_stepped :]]
    expected = way.stack.compute(*way.stack.part(constant, slice(None), rows), backend="reference")[:, 5:]
    if "kappa" in way.stack.names and not detached:  # later steps use it as well
        inputs = inputs[: way.stack.num_stepped]
    assert_agree(actual, expected, inputs, 1e-12, way.stack.tolerance)


@ways(reference=False, ops=False, triton=False)
def test_the_caller_may_overwrite_what_was_passed(way: Way) -> None:
    inputs = [x.detach() for x in way.stack.random_inputs(2, 6, 3)]
    expected = way.stack.compute(*inputs, backend="reference")
    state = way.begin(inputs)
    for t in range(6):
        passed = [x.clone() for x in way.stack.part(inputs, slice(t, t + 1))]
        reading, state = way.stack.step_through(passed, state)
        for x in passed:
            x.fill_(7)
        assert_normwise_close(reading, expected[:, t : t + 1], 1e-12)


@pytest.mark.parametrize("name", [name for name, stack in STACKS.items() if "steps-pytorch" in stack.ways])
def test_default_device(name: str) -> None:
    """States stay where their inputs are."""
    stack = STACKS[name]
    inputs = [x.detach() for x in stack.random_inputs(2, 3, 3)]
    state = stack.begin(inputs)
    with torch.device("meta"):
        reading, after = stack.step_through(inputs[: stack.num_stepped], state)
        again, _ = stack.step_through(inputs[: stack.num_stepped], after.reorder(torch.tensor([1, 0], device="cpu")))
    assert reading.device == again.device == torch.device("cpu")


@ways("nondeterministic", reference=False, ops=False, triton=False)
def test_training_takes_the_memory_of_a_few_states(way: Way) -> None:
    """O(n^2): if each step kept a copy of the state before it, they would take far more."""
    inputs = [x.detach().requires_grad_() for x in way.stack.random_inputs(1, 60, 4)]
    held = 8 * 18 * 60 * 60  # bytes of the last state
    assert held < peak_of_bytes(lambda: way.read(inputs).sum().backward()) < 8 * held
