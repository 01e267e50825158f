"""The nondeterministic stack one step at a time: where it needs exponents, where its runs start, and training."""

from __future__ import annotations

import pytest
import torch

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from tests.helpers import assert_agree, assert_normwise_close
from tests.ops.nondeterministic.inputs import ARGUMENTS, initial_state, random_inputs, step_through


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize(
    ("std", "masked", "num_states", "num_symbols"),
    [(0.1, 0, 1, 1), (1, 0, 2, 3), (20, 0, 3, 1), (60, 0, 2, 3), (1, 0.5, 2, 3), (30, 0.5, 3, 1)],
)
def test_steps_equal_the_whole_sequence(std: float, masked: float, num_states: int, num_symbols: int) -> None:
    for length in (1, 2, 11):
        inputs = random_inputs(3, length, num_states, num_symbols, std=std, masked=masked)
        whole = nondeterministic_stack(*inputs)
        stepped, _ = step_through(inputs, initial_state(inputs))
        assert_agree(stepped, whole, inputs, 1e-12, 1e-9, rounding=1e-14, names=ARGUMENTS)


def test_reordering_moves_no_columns() -> None:
    inputs = [x.detach() for x in random_inputs(3, 8)]
    _, state = step_through(inputs, initial_state(inputs))
    reordered = state.reorder(torch.tensor([2, 2, 0, 1]))
    assert isinstance(state.columns, NativeColumns)
    assert isinstance(reordered.columns, NativeColumns)
    assert reordered.columns.memory is state.columns.memory
    _, after = reordered.step(*(x[[2, 2, 0, 1], 0] for x in inputs[:4]))
    assert isinstance(after.columns, NativeColumns)
    assert all(one is other for one, other in zip(after.columns.memory, state.columns.memory, strict=False))


def test_sizes_are_checked() -> None:
    bottom = torch.zeros(3)
    with pytest.raises(ValueError, match="num_states: expected at least 1, got 0"):
        NondeterministicStackState.initial(bottom, batch_size=2, num_states=0, num_symbols=2)
    with pytest.raises(ValueError, match="num_symbols: expected at least 1, got 0"):
        NondeterministicStackState.initial(bottom, batch_size=2, num_states=1, num_symbols=0)


@pytest.mark.usefixtures("columns")
def test_vectors_that_are_views_yet_to_be_negated() -> None:
    """Such as ``x.conj().imag``: their memory holds the negative numbers."""
    inputs = [x.detach() for x in random_inputs(2, 3)]
    expected, _ = step_through(inputs, initial_state(inputs))
    views = [*inputs[:3], *(torch.complex(x, -x).conj().imag for x in inputs[3:])]
    assert all(x.is_neg() for x in views[3:])
    readings, _ = step_through(views, initial_state(views))
    assert torch.equal(readings, expected)


@pytest.mark.filterwarnings("ignore:.*Dynamo")  # what its graphs break at
def test_compiled_steps_continue_a_state() -> None:
    inputs = [x.detach() for x in random_inputs(2, 4)]
    torch._dynamo.reset()
    expected, _ = step_through(inputs, initial_state(inputs))
    state = initial_state(inputs)
    for t in (0, 1):
        _, state = state.step(*(x[:, t] for x in inputs[:4]))
    step = torch.compile(NondeterministicStackState.step, backend="aot_eager")
    for t in (2, 3):
        reading, state = step(state, *(x[:, t] for x in inputs[:4]))
        assert_normwise_close(reading, expected[:, t], 1e-12)


def test_all_transitions_in_one_tensor() -> None:
    push, replace, pop, values, bottom = (x.detach() for x in random_inputs(2, 3, 2, 3))
    state = initial_state((push, replace, pop, values, bottom))
    joined = torch.cat([push.flatten(4), replace.flatten(4), pop], -1).flatten(2)
    for t in range(3):
        expected, _ = state.step(push[:, t], replace[:, t], pop[:, t], values[:, t])
        reading, state = state.step_joined(joined[:, t], values[:, t])
        assert torch.equal(reading, expected)
    with pytest.raises(ValueError, match=r"transitions: expected shape .*84.*, got \(2, 83\)"):
        state.step_joined(joined[:, 0, 1:], values[:, 0])


@pytest.mark.usefixtures("columns")
def test_a_start_is_what_replacements_make_of_the_usual_one() -> None:
    inputs = random_inputs(2, 6)
    start = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    state = initial_state(inputs, start=start, weighs=True)
    assert_normwise_close(state.log_weights, start, 1e-12)
    forbidden = torch.full_like(inputs[0][:, :1], -torch.inf)
    first = forbidden.clone()
    first[:, 0, 0, 0] = start
    replacement = forbidden, first, torch.full_like(inputs[2][:, :1], -torch.inf), inputs[3][:, :1]
    longer = [*(torch.cat([before, x], 1) for before, x in zip(replacement, inputs, strict=False)), inputs[4]]
    readings, state = step_through(inputs, state)
    assert_agree(readings, nondeterministic_stack(*longer)[:, 1:], [*inputs, start], 1e-12, 1e-9)
    _, expected = step_through(longer, initial_state(longer, weighs=True))
    assert_agree(state.log_weights, expected.log_weights, [*inputs, start], 1e-12, 1e-9)


def test_shape_of_the_start() -> None:
    with pytest.raises(ValueError, match=r"start: expected shape .*, got \(2, 3, 2\)"):
        NondeterministicStackState.initial(
            torch.zeros(3), batch_size=2, num_states=2, num_symbols=3, start=torch.zeros(2, 3, 2)
        )
