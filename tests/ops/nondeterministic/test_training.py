"""Training through the steps of the nondeterministic stack, and where its runs start."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from fairseq_stack.ops.nondeterministic import state as states
from tests.helpers import assert_normwise_close, peak_of_bytes
from tests.ops.nondeterministic.stepping import initial_state, random_inputs, step_through, weighted_sum


@pytest.mark.usefixtures("columns")
def test_gradcheck() -> None:
    inputs = random_inputs(2, 4, 2, 2)
    start = torch.randn(2, 2, 2, dtype=torch.float64, requires_grad=True)

    def readings(start: Tensor, *inputs: Tensor) -> Tensor:
        state = NondeterministicStackState.initial(
            inputs[4], batch_size=2, num_states=2, num_symbols=2, window=3, start=start
        )
        return step_through(inputs, state)[0]

    torch.autograd.gradcheck(readings, (start, *inputs))


@pytest.mark.usefixtures("columns")
def test_a_state_continued_in_several_ways() -> None:
    inputs, others = random_inputs(2, 7), random_inputs(2, 7)
    state = initial_state(inputs)
    first, state = step_through([x[:, :4] for x in inputs[:4]], state)
    one, _ = step_through([x[:, 4:] for x in inputs[:4]], state)
    other, _ = step_through([x[:, 4:] for x in others[:4]], state)
    leaves = [*inputs, *others[:4]]
    found = torch.autograd.grad(weighted_sum(torch.cat([first, one, other], 1)), leaves)
    mixed = [torch.cat([x[:, :4], y[:, 4:]], 1) for x, y in zip(inputs[:4], others[:4], strict=True)]
    whole = [nondeterministic_stack(*inputs), nondeterministic_stack(*[*mixed, inputs[4]])[:, 4:]]
    wanted = torch.autograd.grad(weighted_sum(torch.cat(whole, 1)), leaves)
    for actual, want in zip(found, wanted, strict=True):
        assert_normwise_close(actual, want, 1e-9)


@pytest.mark.usefixtures("columns")
def test_a_graph_is_differentiated_several_times() -> None:
    inputs = random_inputs(2, 6)
    loss = weighted_sum(step_through(inputs, initial_state(inputs))[0])
    first = [x.clone() for x in torch.autograd.grad(loss, inputs, retain_graph=True)]
    for one, other in zip(first, torch.autograd.grad(loss, inputs), strict=True):
        assert torch.equal(one, other)


@pytest.mark.usefixtures("columns")
def test_gradient_of_one_reading() -> None:
    inputs = random_inputs(2, 6)
    readings, _ = step_through(inputs, initial_state(inputs))
    whole = nondeterministic_stack(*inputs)
    found, wanted = (torch.autograd.grad(weighted_sum(x[:, 3]), inputs) for x in (readings, whole))
    for actual, want in zip(found, wanted, strict=True):
        assert_normwise_close(actual, want, 1e-9)


@pytest.mark.parametrize("window", [None, 3])
def test_no_gradient_passes_a_detached_state(columns: type, window: int | None) -> None:
    inputs = random_inputs(2, 9)
    state = NondeterministicStackState.initial(inputs[4], batch_size=2, num_states=2, num_symbols=3, window=window)
    _, state = step_through([x[:, :5] for x in inputs[:4]], state)
    detached = state.detach()
    assert isinstance(detached.columns, columns)
    expected, _ = step_through([x[:, 5:] for x in inputs[:4]], state)
    after, _ = step_through([x[:, 5:] for x in inputs[:4]], detached)
    assert torch.equal(after, expected)
    *found, of_bottom = torch.autograd.grad(weighted_sum(after), inputs, materialize_grads=True)
    assert not of_bottom.any()
    constant = [torch.cat([x[:, :5].detach(), x[:, 5:]], 1) for x in inputs[:4]]
    state = NondeterministicStackState.initial(
        inputs[4].detach(), batch_size=2, num_states=2, num_symbols=3, window=window
    )
    wanted = torch.autograd.grad(weighted_sum(step_through(constant, state)[0][:, 5:]), inputs[:4])
    for actual, want in zip(found, wanted, strict=True):
        assert not actual[:, :5].any()
        assert_normwise_close(actual[:, 5:], want[:, 5:], 1e-9)


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "pytorch"])
def test_a_long_sequence(kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not kernels:
        monkeypatch.setattr(states, "library", lambda: None)
    inputs = random_inputs(2, 63)
    stepped, whole = step_through(inputs, initial_state(inputs))[0], nondeterministic_stack(*inputs)
    assert_normwise_close(stepped, whole, 1e-12)
    found, wanted = (torch.autograd.grad(weighted_sum(x), inputs) for x in (stepped, whole))
    for actual, want in zip(found, wanted, strict=True):
        assert_normwise_close(actual, want, 1e-9)


@pytest.mark.parametrize("kernels", [True, False], ids=["kernels", "pytorch"])
def test_training_takes_the_memory_of_a_few_states(kernels: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """O(n^2): if each step kept a copy of the columns before it, they would take 66 times the memory of the last."""
    if not kernels:
        monkeypatch.setattr(states, "library", lambda: None)
    length, size = 100, 2 * 3
    inputs = random_inputs(1, length)

    def train() -> None:
        weighted_sum(step_through(inputs, initial_state(inputs))[0]).backward()

    columns = 8 * size**2 * length**2 / 2
    assert columns < peak_of_bytes(train) < 8 * columns


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_steps_on_cuda_equal_the_whole_sequence_on_the_cpu() -> None:
    inputs = random_inputs(2, 40)
    whole = nondeterministic_stack(*inputs)
    on_device = [x.detach().cuda().requires_grad_() for x in inputs]
    stepped = step_through(on_device, initial_state(on_device))[0]
    assert stepped.is_cuda
    cotangent = torch.randn_like(whole)
    found = torch.autograd.grad(stepped, on_device, cotangent.cuda())
    for actual, want in zip((stepped, *found), (whole, *torch.autograd.grad(whole, inputs, cotangent)), strict=True):
        assert_normwise_close(actual, want, 1e-9)


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


# ---------------------------------------------------------------- the start


@pytest.mark.usefixtures("columns")
def test_a_start_is_what_replacements_make_of_the_usual_one() -> None:
    inputs = random_inputs(2, 6)
    start = torch.randn(2, 2, 3, dtype=torch.float64, requires_grad=True)
    state = NondeterministicStackState.initial(inputs[4], batch_size=2, num_states=2, num_symbols=3, start=start)
    readings, _ = step_through(inputs, state)
    forbidden = torch.full_like(inputs[0][:, :1], -torch.inf)
    first = forbidden.clone()
    first[:, 0, 0, 0] = start
    longer = [
        torch.cat([before, x], 1)
        for before, x in zip(
            (forbidden, first, torch.full_like(inputs[2][:, :1], -torch.inf), inputs[3][:, :1]), inputs[:4], strict=True
        )
    ]
    whole = nondeterministic_stack(*[*longer, inputs[4]])[:, 1:]
    assert_normwise_close(readings, whole, 1e-12)
    leaves = [*inputs, start]
    found, wanted = (torch.autograd.grad(weighted_sum(x), leaves) for x in (readings, whole))
    for actual, want in zip(found, wanted, strict=True):
        assert_normwise_close(actual, want, 1e-9)


def test_shape_of_the_start() -> None:
    with pytest.raises(ValueError, match=r"start: expected shape .*, got \(2, 3, 2\)"):
        NondeterministicStackState.initial(
            torch.zeros(3), batch_size=2, num_states=2, num_symbols=3, start=torch.zeros(2, 3, 2)
        )
