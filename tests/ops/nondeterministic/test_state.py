"""The nondeterministic stack one step at a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.nondeterministic._native_columns import NativeColumns
from tests.helpers import INSTRUCTION_SETS, assert_normwise_close, each_golden_file, threads, use_instruction_set
from tests.ops.nondeterministic.stepping import initial_state, random_inputs, step_through

ARGUMENTS = ("push", "replace", "pop", "values", "bottom")


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((readings * cotangent).sum(), inputs, materialize_grads=True)


@pytest.mark.usefixtures("columns")
@each_golden_file("nondeterministic_*.npz")
def test_golden_values_and_gradients(path: Path) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ARGUMENTS]
    readings, _ = step_through(inputs, initial_state(inputs))
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    for key, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.tensor(golden["cotangent"])), strict=True):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize(("num_states", "num_symbols"), [(1, 1), (2, 3), (3, 1)])
@pytest.mark.parametrize(("std", "masked"), [(0.1, 0), (1, 0), (20, 0), (60, 0), (1, 0.5), (30, 0.5)])
@pytest.mark.parametrize("length", [1, 2, 11])
def test_steps_equal_the_whole_sequence(
    length: int, std: float, masked: float, num_states: int, num_symbols: int
) -> None:
    inputs = random_inputs(3, length, num_states, num_symbols, std=std, masked=masked)
    whole = nondeterministic_stack(*inputs)
    stepped, _ = step_through(inputs, initial_state(inputs))
    cotangent = torch.randn_like(whole)
    assert_normwise_close(stepped, whole, 1e-12)
    for name, actual, wanted in zip(
        ARGUMENTS, gradients(stepped, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True
    ):
        scale = float(wanted.abs().max()) or 1.0
        assert_normwise_close(actual, wanted, max(1e-9, 1e-14 / scale), name)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize(("num_states", "num_symbols"), [(1, 1), (2, 3), (3, 3), (4, 2)])
@pytest.mark.parametrize(("std", "masked"), [(1, 0), (60, 0), (1, 0.5), (30, 0.5)])
def test_steps_without_gradients_equal_the_whole_sequence(
    std: float, masked: float, num_states: int, num_symbols: int, instruction_set: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_instruction_set(instruction_set, monkeypatch)
    inputs = [x.detach() for x in random_inputs(3, 19, num_states, num_symbols, std=std, masked=masked)]
    inputs[4] = torch.randn(3, 4, dtype=torch.float64)
    stepped, state = step_through(inputs, initial_state(inputs))
    assert isinstance(state.columns, NativeColumns)
    assert_normwise_close(stepped, nondeterministic_stack(*inputs, backend="pytorch"), 1e-12)


def test_threads_change_nothing() -> None:
    inputs = [x.detach() for x in random_inputs(64, 24, 3, 3)]
    readings = []
    for count in (1, 3):
        with threads(count):
            readings.append(step_through(inputs, initial_state(inputs))[0])
    assert torch.equal(*readings)


@pytest.mark.usefixtures("columns")
def test_gradients_of_later_steps_alone() -> None:
    """Steps without gradients, a reordering, and then steps with gradients."""
    inputs = random_inputs(2, 12, 2, 3, std=3, masked=0.2)
    rows = torch.tensor([1, 0, 1])
    first = [x.detach()[:, :9] for x in inputs[:4]] + [inputs[4].detach()]
    _, state = step_through(first, initial_state(first))
    later, _ = step_through([x[rows, 9:] for x in inputs[:4]], state.reorder(rows))
    whole = nondeterministic_stack(*[x[rows] for x in inputs[:4]] + [inputs[4].detach()])[:, 9:]
    cotangent = torch.randn_like(whole)
    assert_normwise_close(later, whole, 1e-12)
    wanted = [x.clone() for x in gradients(whole, inputs[:4], cotangent)]
    for name, actual, want in zip(ARGUMENTS, gradients(later, inputs[:4], cotangent), wanted, strict=False):
        assert not actual[:, :9].any()
        assert_normwise_close(actual[:, 9:], want[:, 9:], 1e-9, name)


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


@pytest.mark.usefixtures("columns")
def test_steps_equal_the_whole_sequence_where_inner_weights_are_out_of_range() -> None:
    inputs = random_inputs(2, 15)
    with torch.no_grad():
        inputs[0][:, :8, ..., 2] += 200  # At first the best is to push symbol 2;
        for weights in inputs[:3]:
            weights[:, 8:, :, 2] -= 300  # but with it on top, everything costs more in the end.
    stepped, _ = step_through(inputs, initial_state(inputs))
    whole = nondeterministic_stack(*inputs)
    cotangent = torch.randn_like(whole)
    assert_normwise_close(stepped, whole, 1e-12)
    for actual, wanted in zip(gradients(stepped, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-9)


@pytest.mark.usefixtures("columns")
def test_a_high_stack_survives_while_a_low_one_is_far_likelier() -> None:
    """At step 2, symbol 2 is pushed or never. It costs much until step 9, and everything else does after it."""
    inputs = random_inputs(2, 14)
    push, replace, pop = inputs[:3]
    with torch.no_grad():
        push[:, 2:] = -torch.inf
        push[:, 0, ..., 2] = -torch.inf
        push[:, 1, ..., :2] = -torch.inf
        replace[:, :, :, :2, :, 2] = -torch.inf
        replace[:, :, :, 2, :, :2] = -torch.inf
        for weights in (replace, pop):
            weights[:, 2:9, :, 2] -= 300
            weights[:, 9:, :, :2] -= 600
    stepped, _ = step_through(inputs, initial_state(inputs))
    reference = nondeterministic_stack(*inputs, backend="reference")
    assert reference[:, -1, :, 2].abs().max() > 0.1
    assert_normwise_close(stepped, reference, 1e-9)
    assert_normwise_close(nondeterministic_stack(*inputs, backend="pytorch"), reference, 1e-9)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("magnitude", [100.0, 500.0, 1e4])
@pytest.mark.parametrize("masked", [0.0, 0.3])
def test_large_log_weights_give_finite_results(magnitude: float, masked: float) -> None:
    inputs = random_inputs(32, 14, 3, 2, std=magnitude, masked=masked)
    readings, _ = step_through(inputs, initial_state(inputs))
    assert readings.isfinite().all()
    for name, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.randn_like(readings)), strict=True):
        assert gradient.isfinite().all(), name


@pytest.mark.usefixtures("columns")
def test_state_is_immutable() -> None:
    inputs = [x.detach() for x in random_inputs(3, 7)]
    _, state = step_through([x[:, :5] for x in inputs[:4]] + inputs[4:], initial_state(inputs))
    before = tensors_of(state)
    first, after = state.step(*(x[:, 5] for x in inputs[:4]))
    after.step(*(x[:, 6] for x in inputs[:4]))
    state.reorder(torch.tensor([2, 0, 0])).step(*(x[:, 6] for x in inputs[:4]))
    second, _ = state.step(*(x[:, 5] for x in inputs[:4]))
    assert torch.equal(first, second)
    for x, other in zip(tensors_of(state), before, strict=True):
        assert torch.equal(x, other)
    with pytest.raises(AttributeError):
        state.columns = None  # type: ignore[misc,assignment]


def tensors_of(state: NondeterministicStackState) -> list[Tensor]:
    """What a state consists of, in tensors of its own."""
    found = [x.clone() for x in vars(state.columns.tracked()).values() if isinstance(x, Tensor)]
    assert len(found) == 4
    return found


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize(
    "index", [[2, 0, 1], [1], [0, 0, 2, 2, 1], []], ids=["permute", "shrink", "repeat", "none-left"]
)
@pytest.mark.parametrize("cut", [0, 1, 4])
def test_reorder(index: list[int], cut: int) -> None:
    inputs = [x.detach() for x in random_inputs(3, 8)]
    state = initial_state(inputs)
    if cut:
        _, state = step_through([x[:, :cut] for x in inputs[:4]], state)
    rows = torch.tensor(index, dtype=torch.long)
    continued, _ = step_through([x[rows, cut:] for x in inputs[:4]], state.reorder(rows))
    expected = nondeterministic_stack(*[x[rows] for x in inputs[:4]] + inputs[4:])
    assert_normwise_close(continued, expected[:, cut:], 1e-12)


@pytest.mark.usefixtures("columns")
def test_reorder_carries_a_bottom_vector_for_each_row() -> None:
    inputs = [x.detach() for x in random_inputs(3, 4)]
    inputs[4] = torch.randn(3, 4, dtype=torch.float64)
    rows = torch.tensor([2, 2, 0, 1])
    readings, _ = step_through([x[rows] for x in inputs[:4]], initial_state(inputs).reorder(rows))
    assert_normwise_close(readings, nondeterministic_stack(*(x[rows] for x in inputs)), 1e-12)


@pytest.mark.usefixtures("columns")
def test_gradient_through_reorder() -> None:
    inputs = random_inputs(2, 6)
    rows = torch.tensor([1, 0])
    state = initial_state(inputs)
    first, state = step_through([x[:, :3] for x in inputs[:4]], state)
    second, _ = step_through([x[rows, 3:] for x in inputs[:4]], state.reorder(rows))
    readings = torch.cat([first, second[rows]], 1)
    whole = nondeterministic_stack(*inputs)
    cotangent = torch.randn_like(whole)
    for actual, wanted in zip(gradients(readings, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-9)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_precision_does_not_depend_on_dtype_or_autocast(dtype: torch.dtype, autocast: bool) -> None:
    inputs = random_inputs(2, 6, dtype=dtype)
    expected = nondeterministic_stack(*(x.double() for x in inputs))
    state = initial_state(inputs)
    for t in range(6):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            reading, state = state.step(*(x[:, t] for x in inputs[:4]))
        assert reading.dtype == dtype
        assert_normwise_close(reading, expected[:, t], torch.finfo(dtype).eps)
    assert state.like.dtype == torch.float32


def test_sizes_are_checked() -> None:
    bottom = torch.zeros(3)
    with pytest.raises(ValueError, match="num_states: expected at least 1, got 0"):
        NondeterministicStackState.initial(bottom, batch_size=2, num_states=0, num_symbols=2)
    with pytest.raises(ValueError, match="num_symbols: expected at least 1, got 0"):
        NondeterministicStackState.initial(bottom, batch_size=2, num_states=1, num_symbols=0)
    with pytest.raises(ValueError, match="batch_size: expected at least 0, got -1"):
        NondeterministicStackState.initial(bottom, batch_size=-1, num_states=1, num_symbols=1)


@pytest.mark.usefixtures("columns")
def test_vectors_that_are_views_yet_to_be_negated() -> None:
    """Such as ``x.conj().imag``: their memory holds the negative numbers."""
    inputs = [x.detach() for x in random_inputs(2, 3)]
    expected, _ = step_through(inputs, initial_state(inputs))
    views = [*inputs[:3], *(torch.complex(x, -x).conj().imag for x in inputs[3:])]
    assert all(x.is_neg() for x in views[3:])
    readings, _ = step_through(views, initial_state(views))
    assert torch.equal(readings, expected)


@pytest.mark.usefixtures("columns")
def test_reordering_an_empty_batch_that_needs_gradients() -> None:
    inputs = random_inputs(0, 3)
    state = initial_state(inputs)
    for t in range(3):
        reading, state = state.step(*(x[:, t] for x in inputs[:4]))
        state = state.reorder(torch.tensor([], dtype=torch.long))
    assert reading.shape == (0, 2, 3, 4)
