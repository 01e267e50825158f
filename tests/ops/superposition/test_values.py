"""The superposition stack against enumeration, a real stack, and its own reference."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import SuperpositionStackState, superposition_stack
from tests.helpers import (
    assert_agree,
    assert_normwise_close,
    gradients,
)
from tests.ops.stacks import STACKS, fast_backends

STACK = STACKS["superposition"]
PUSH, NOOP, POP = range(3)


Item = TypeVar("Item")


# Lengths around the places where segments, heights, and the vectors of a processor end; vectors shorter and longer.
SIZES = [(1, 70), (6, 33), (15, 5), (31, 33), (33, 5), (63, 1), (63, 70), (65, 33)]

# The compiled kernel follows push times, and in long sequences of short vectors components: one or several tiles of
# them, or so few that a column is cut into 16, 8 or 4 parts.
LONG_SIZES = [(127, 16), (128, 2), (129, 17), (256, 1), (258, 130), (300, 3), (290, 4), (385, 5), (300, 49), (259, 129)]
LONG = [(*size, None) for size in LONG_SIZES] + [(300, 3, 149), (300, 3, 150), (290, 20, 130)]  # n, m, depth limit


def apply(stack: list[Item], action: int, item: Item) -> None:
    if action == PUSH:
        stack.append(item)
    elif action == POP and stack:
        stack.pop()


@pytest.mark.parametrize(("length", "size"), SIZES)
def test_any_weights_of_actions(length: int, size: int) -> None:
    """The weights of actions need not be probabilities."""
    inputs = torch.randn(3, length, 3).double().requires_grad_(), torch.randn(3, length, size).double().requires_grad_()
    expected = superposition_stack(*inputs, backend="reference")
    assert_agree((superposition_stack(*inputs, backend=backend) for backend in fast_backends()), expected, inputs)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize(("length", "size", "limit"), LONG)
def test_native_equals_pytorch_in_long_sequences(length: int, size: int, limit: int | None) -> None:
    inputs = STACK.random_inputs(2, length, size)
    readings, expected = (
        superposition_stack(*inputs, depth_limit=limit, backend=backend) for backend in ("native", "pytorch")
    )
    assert_agree(readings, expected, inputs)


# Limits around those that change nothing, odd and even; components in several tiles, and fewer than a vector has.
LIMITED = [(0, 5, 1), (1, 1, 2), (2, 5, 1), (3, 33, 3), (8, 5, 3), (8, 1, 31), (63, 1, 2), (63, 5, 31), (63, 33, 32)]
LIMITED += [(300, 3, 7), (129, 2, 64)]


@pytest.mark.parametrize(("length", "size", "limit"), LIMITED)
def test_a_limited_stack_equals_the_reference(length: int, size: int, limit: int) -> None:
    inputs = STACK.random_inputs(2, length, size)
    expected = superposition_stack(*inputs, depth_limit=limit, backend="reference")
    readings = (superposition_stack(*inputs, depth_limit=limit, backend=backend) for backend in fast_backends())
    assert_agree(readings, expected, inputs)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(run=st.lists(st.integers(0, 2), min_size=20, max_size=20), limit=st.integers(1, 30))
def test_deterministic_actions_are_a_real_stack_that_loses_its_lowest_element(
    backend: str, run: list[int], limit: int
) -> None:
    actions = torch.nn.functional.one_hot(torch.tensor([run]), 3).float()
    values = torch.arange(1.0, 21).view(1, 20, 1)
    readings = superposition_stack(actions, values, depth_limit=limit, backend=backend).flatten()
    stack: list[float] = []
    for action, vector, reading in zip(run, values.flatten().tolist(), readings.tolist(), strict=True):
        apply(stack, action, vector)
        stack = stack[-limit:]
        assert reading == (stack[-1] if stack else 0)


@pytest.mark.parametrize("backend", ["native", "pytorch"])
def test_limited_stacks_are_read_at_any_length(backend: str) -> None:
    """What the last steps read does not depend on how long the sequence is, if everything older is lost."""
    actions, values = STACK.random_inputs(1, 5_000, 2, dtype=torch.float32)
    actions.data[:, -40:-20] = torch.tensor([1.0, 0, 0])
    readings = superposition_stack(actions, values, depth_limit=20, backend=backend)
    last = superposition_stack(actions[:, -40:], values[:, -40:], depth_limit=20, backend=backend)
    assert_normwise_close(readings[:, -20:], last[:, -20:], 1e-6)
    whole, part = (gradients(x[:, -20:], (values,), torch.ones(1, 20, 2))[0] for x in (readings, last))
    assert_normwise_close(whole, part, 1e-6)
    assert not whole[:, :-40].any()


@pytest.mark.parametrize("weights", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1e-38, 1, 1e-38)])
def test_extreme_values_are_finite(weights: tuple[float, ...], backend: str) -> None:
    actions = torch.tensor(weights, dtype=torch.float32).expand(2, 50, 3).clone().requires_grad_()
    for scale in (0.0, 1e-40, 1e30):
        values = torch.full((2, 50, 3), scale, requires_grad=True)
        readings = superposition_stack(actions, values, backend=backend)
        results = readings, *gradients(readings, (actions, values), torch.ones_like(values))
        assert all(x.isfinite().all() for x in results)


@pytest.mark.usefixtures("instruction_set")
def test_later_values_do_not_reach_earlier_gradients() -> None:
    """The product of a cotangent with a vector that is pushed later is of no use, and may be infinite."""
    actions, values = (x.detach() for x in STACK.random_inputs(2, 20, 3, dtype=torch.float32))
    values[:, 12:] = 1e38
    inputs = actions.requires_grad_(), values.requires_grad_()
    cotangent = torch.full_like(values, 100.0)
    cotangent[:, 12:] = 0
    wide = [x.detach().double().requires_grad_() for x in inputs]
    expected = gradients(superposition_stack(*wide, backend="reference"), wide, cotangent.double())
    actual = gradients(superposition_stack(*inputs, backend="native"), inputs, cotangent)
    for one, other in zip(actual, expected, strict=True):
        assert_normwise_close(one, other, 1e-5)


def test_long_sequences_keep_only_the_stacks_between_segments(fast_backend: str) -> None:
    actions, values = STACK.random_inputs(1, 400, 20, dtype=torch.float32)
    kept = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        superposition_stack(actions, values, backend=fast_backend)
    whole_walk = 400 * 200 * 20 * 4
    assert kept < whole_walk / 10


def test_a_limited_state_keeps_no_more_elements() -> None:
    state = SuperpositionStackState.initial(batch_size=2, size=4, depth_limit=3)
    for t in range(8):
        _, state = state.step(torch.rand(2, 3), torch.rand(2, 4))
        assert state.elements.shape[1] == min(t + 1, 3)


def test_a_stack_that_may_hold_nothing() -> None:
    new = partial(SuperpositionStackState.initial, batch_size=2, size=4)
    for call in (partial(superposition_stack, *STACK.draw(1, 2, 3)), new):
        with pytest.raises(ValueError, match=r"^depth_limit: expected at least 1, got 0$"):
            call(depth_limit=0)
