"""The weights of the runs of the nondeterministic stack: the logarithms of the forward weights alpha."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from tests.helpers import assert_normwise_close
from tests.ops.nondeterministic.inputs import initial_state, random_inputs, weighted_sum


def expected(inputs: Sequence[Tensor], window: int | None = None) -> Tensor:
    """log alpha[t], (B, n, Q, S), from the weights W of the reference.

    With the total weights Z_t of all runs and the distributions p_t = alpha[t] / Z_t, the runs whose last transition is
    a push have the share of v_t in W_t: Z_{t-1} sum_{q,x} p_{t-1}[q, x] sum_{r,y} push_t[q, x -> r, xy] / Z_t.
    """
    length = inputs[0].shape[1]
    _, weights = nondeterministic_stack(*inputs, backend="reference", return_weights=True, window=window)
    logs = weights.sum(2).log()
    before = torch.full_like(logs[:, :1], -torch.inf)
    before[:, :, 0, 0] = 0
    pushed = (torch.cat([before, logs[:, :-1]], 1) + inputs[0].flatten(4).logsumexp(4)).flatten(2).logsumexp(2)
    shares = torch.stack([weights[:, t, t + 1].sum((1, 2)) for t in range(length)], 1)
    return logs + (pushed - shares.log()).cumsum(1)[..., None, None]


def stepped(inputs: Sequence[Tensor], state: NondeterministicStackState) -> tuple[Tensor, NondeterministicStackState]:
    """The log weights after each step, and the state after the last."""
    log_weights = []
    for t in range(inputs[0].shape[1]):
        _, state = state.step(*(x[:, t] for x in inputs[:4]))
        log_weights.append(state.log_weights)
    return torch.stack(log_weights, 1), state


def check(inputs: Sequence[Tensor], window: int | None) -> None:
    actual, wanted = stepped(inputs, initial_state(inputs, window=window, weighs=True))[0], expected(inputs, window)
    assert_normwise_close(actual, wanted, 1e-12)
    gradients = [torch.autograd.grad(weighted_sum(x), inputs[:3], materialize_grads=True) for x in (actual, wanted)]
    for actual, want in zip(*gradients, strict=True):
        assert_normwise_close(actual, want, 1e-9)


@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("window", [None, 3])
def test_the_weights_of_the_reference(window: int | None) -> None:
    """Of each configuration; test_posterior.py asks for their sums, in more cases."""
    check(random_inputs(2, 7), window)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize(("num_states", "num_symbols"), [(1, 1), (3, 1), (2, 3)])
def test_instruction_sets(num_states: int, num_symbols: int) -> None:
    """Each lays out the columns in its own way."""
    check(random_inputs(2, 6, num_states, num_symbols), 4)


@pytest.mark.usefixtures("columns")
def test_gradcheck() -> None:
    """Of the weights together with the readings, with rows that branch and end."""
    inputs = random_inputs(2, 3, 1, 2)
    start = torch.randn(2, 1, 2, dtype=torch.float64, requires_grad=True)

    def results(start: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
        state = initial_state(inputs, window=2, start=start, weighs=True)
        outputs = [state.log_weights]
        for t in range(3):
            reading, state = state.step(*(x[:, t] for x in inputs[:4]))
            state = state.reorder(torch.tensor([1, t % 2]))
            outputs += [reading, state.log_weights]
        return tuple(outputs)

    torch.autograd.gradcheck(results, (start, *inputs))


@pytest.mark.usefixtures("columns")
def test_no_runs() -> None:
    """Only pushes of the symbol 0, and then none: log weights of -inf, without gradients."""
    inputs = random_inputs(1, 3, 1, 2)
    forbidden = [torch.full_like(x, -torch.inf) for x in inputs[:3]]
    push = torch.where(torch.tensor([[True, False]]).expand_as(inputs[0]), inputs[0], -torch.inf)
    actual, state = stepped([push, *forbidden[1:], *inputs[3:]], initial_state(inputs, weighs=True))
    assert_normwise_close(actual[0, :, 0, 0], inputs[0][0, :, 0, 0, 0, 0].cumsum(0), 1e-12)
    assert actual[0, :, 0, 1].tolist() == [-torch.inf] * 3
    (gradient,) = torch.autograd.grad(actual.logsumexp(3).tanh().sum() + actual.tanh().sum(), inputs[0])
    assert gradient[:, :, 0, 0, 0, 0].all()
    assert not gradient[..., 1].any() and not gradient[:, :, :, 1].any()
    push, replace, pop = (x[:, 0] for x in forbidden)
    _, state = state.step(push, replace, pop, inputs[3][:, 0])
    assert state.log_weights.tolist() == [[[-torch.inf] * 2]]


@pytest.mark.usefixtures("columns")
def test_undefined_log_weights() -> None:
    for undefined in (torch.nan, torch.inf):
        inputs = [x.detach() for x in random_inputs(2, 5)]
        clean, _ = stepped(inputs, initial_state(inputs, weighs=True))
        inputs[1][1, 3, 1, 2, 0, 0] = undefined
        actual, _ = stepped(inputs, initial_state(inputs, weighs=True))
        assert actual[1, 3:].isnan().all()
        assert torch.equal(actual[0], clean[0]) and torch.equal(actual[1, :3], clean[1, :3])


@pytest.mark.usefixtures("columns")
def test_a_detached_state_has_constant_ones() -> None:
    inputs = random_inputs(2, 5)
    _, state = stepped([x[:, :3] for x in inputs[:4]], initial_state(inputs, weighs=True))
    assert not state.detach().log_weights.requires_grad
    actual = stepped([x[:, 3:] for x in inputs[:4]], state.detach())[0]
    (gradient,) = torch.autograd.grad(weighted_sum(actual), inputs[:1])
    assert not gradient[:, :3].any() and gradient[:, 3:].all()


@pytest.mark.usefixtures("columns")
def test_dtypes() -> None:
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        wide = torch.promote_types(dtype, torch.float32)
        inputs = [x.detach() for x in random_inputs(2, 5, dtype=dtype)]
        actual, _ = stepped(inputs, initial_state(inputs, weighs=True))
        exact = [x.double() for x in inputs]
        assert actual.dtype == wide
        assert_normwise_close(actual, stepped(exact, initial_state(exact, weighs=True))[0], 4 * torch.finfo(wide).eps)


def test_they_have_to_be_asked_for() -> None:
    state = NondeterministicStackState.initial(torch.zeros(3), batch_size=2, num_states=2, num_symbols=2)
    with pytest.raises(ValueError, match="log_weights: expected a state that was made with weighs=True"):
        _ = state.log_weights
