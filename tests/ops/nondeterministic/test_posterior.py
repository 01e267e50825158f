"""The logarithm of the weight of all runs of the nondeterministic stack, and the posterior of its transitions."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack, transition_posterior
from fairseq_stack.ops.nondeterministic import Transitions, allowed_log_probability
from tests.helpers import assert_normwise_close, hostile
from tests.ops.nondeterministic.inputs import random_inputs
from tests.ops.nondeterministic.runs import enumerated_runs

SIZES = [(1, 2, 3), (3, 2, 2), (4, 1, 3), (5, 2, 1), (6, 1, 2)]
CASES: list[object] = [(3, 2, 2, 0.3, None), (4, 1, 3, 0.0, 2), (6, 1, 2, 0.0, None)]
CASES += [hostile(*size, *rest) for size in SIZES for rest in ((0.0, None), (0.3, None), (0.3, 2), (0.0, 1))]


def log_partition(inputs: Sequence[Tensor], backend: str = "auto", window: int | None = None) -> Tensor:
    return nondeterministic_stack(*inputs, backend=backend, window=window, return_log_partition=True)[1]


def enumerated(transitions: Sequence[Tensor], window: int | None) -> tuple[list[float], Transitions]:
    """Of one sequence: log Z_1..log Z_n, and the share of the runs that take each transition."""
    length = len(transitions[0])
    totals = [0.0] * (length + 1)
    shares: defaultdict[tuple[str, tuple[int, ...]], float] = defaultdict(float)
    for run in enumerated_runs(transitions, window=window, prefixes=True):
        weight = math.exp(run.log_weight)
        totals[len(run.steps)] += weight
        if len(run.steps) == length:
            for t, (operation, index) in enumerate(run.steps):
                shares[operation, (t, *index)] += weight
    actual = Transitions(*map(torch.zeros_like, transitions))
    for (operation, place), weight in shares.items():
        getattr(actual, operation)[place] = weight / totals[-1]
    return [math.log(total) if total else -math.inf for total in totals[1:]], actual


@pytest.mark.parametrize(("length", "num_states", "num_symbols", "masked", "window"), CASES)
def test_enumeration_of_all_runs(
    backend: str, length: int, num_states: int, num_symbols: int, masked: float, window: int | None
) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, 1, std=2, masked=masked)
    log_totals = log_partition(inputs, backend, window)
    posterior = transition_posterior(*inputs[:3], backend=backend, window=window)
    for b in range(2):
        expected_totals, expected = enumerated([x[b].detach() for x in inputs[:3]], window)
        assert_normwise_close(log_totals[b], torch.tensor(expected_totals, dtype=torch.float64), 1e-12)
        for actual, shares in zip(posterior, expected, strict=True):
            assert_normwise_close(actual[b], shares, 1e-10)


@pytest.mark.parametrize("window", [None, 3, 9])
def test_backends_equal_the_reference(fast_backend: str, window: int | None) -> None:
    inputs = random_inputs(2, 9, 2, 3, 1, std=20, masked=0.2)
    weights = torch.rand(2, 9, dtype=torch.float64)
    results = []
    for backend in (fast_backend, "reference"):
        actual = log_partition(inputs, backend, window)
        reachable = torch.where(actual > -torch.inf, actual, 0)
        results.append([actual, *torch.autograd.grad((reachable * weights).sum(), inputs[:3])])
    for actual, expected in zip(*results, strict=True):
        assert_normwise_close(actual, expected, 1e-9)


def test_improbable_runs_that_alone_go_on(fast_backend: str) -> None:
    """In the first sequence, float64 cannot hold the share of the runs over one input that are in state 1."""
    inputs = [x.detach() for x in random_inputs(2, 4, 2, 2, 1)]
    for x in inputs[:2]:
        x[0, 0, :, :, 1] -= 800
    for x in inputs[:3]:
        x[0, 1, 0] = -torch.inf
    expected = log_partition(inputs, "reference")
    assert (expected[0, 1:] < -700).all()
    assert_normwise_close(log_partition(inputs, fast_backend), expected, 1e-14)
    posterior = transition_posterior(*inputs[:3], backend=fast_backend)
    for x, y in zip(posterior, transition_posterior(*inputs[:3], backend="reference"), strict=True):
        assert_normwise_close(x, y, 1e-12)


def test_what_is_returned(backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(2, 4, 2, 2, 3)]
    readings, weights, log_totals = nondeterministic_stack(
        *inputs, backend=backend, return_weights=True, return_log_partition=True
    )
    assert torch.equal(readings, nondeterministic_stack(*inputs, backend=backend))
    assert torch.equal(weights, nondeterministic_stack(*inputs, backend=backend, return_weights=True)[1])
    assert torch.equal(log_totals, log_partition(inputs, backend))


def test_no_run(backend: str) -> None:
    """From the third step on all transitions of the first sequence are forbidden."""
    inputs = [x.detach() for x in random_inputs(2, 4, 2, 2, 1)]
    for x in inputs[:3]:
        x[0, 2] = -torch.inf
    assert log_partition(inputs, backend).isneginf().tolist() == [[False, False, True, True], [False] * 4]
    posterior = transition_posterior(*inputs[:3], backend=backend)
    assert not any(x[0].any() for x in posterior)
    assert all(x[1].any() for x in posterior)


@pytest.mark.parametrize("undefined", [torch.nan, torch.inf])
def test_undefined_log_weights(backend: str, undefined: float) -> None:
    inputs = [x.detach() for x in random_inputs(2, 4, 2, 2, 1)]
    clean = log_partition(inputs, backend)
    inputs[1][0, 2, 1, 1, 0, 0] = undefined
    actual = log_partition(inputs, backend)
    assert actual.isnan().tolist() == [[False, False, True, True], [False] * 4]
    assert torch.equal(actual[0, :2], clean[0, :2]) and torch.equal(actual[1], clean[1])
    posterior = transition_posterior(*inputs[:3], backend=backend)
    assert all(x[0].isnan().all() and x[1].isfinite().all() for x in posterior)


def test_no_steps_and_no_sequences(backend: str) -> None:
    for batch_size, length in ((2, 0), (0, 3)):
        inputs = random_inputs(batch_size, length, 2, 3, 1)
        actual = log_partition(inputs, backend)
        assert actual.shape == (batch_size, length)
        actual.sum().backward()
        posterior = transition_posterior(*inputs[:3], backend=backend)
        assert [x.shape for x in posterior] == [x.shape for x in inputs[:3]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_narrow_dtypes(backend: str, dtype: torch.dtype) -> None:
    inputs = [x.detach() for x in random_inputs(2, 6, 2, 2, 1, dtype=dtype)]
    exact = [x.double() for x in inputs]
    pairs = [(log_partition(inputs, backend), log_partition(exact, "reference"))]
    pairs += zip(transition_posterior(*inputs[:3]), transition_posterior(*exact[:3], backend="reference"), strict=True)
    for actual, expected in pairs:
        assert actual.dtype == dtype
        assert_normwise_close(actual, expected, torch.finfo(dtype).eps)


def test_inference_mode(backend: str) -> None:
    push, replace, pop, *_ = random_inputs(2, 5, 1, 2, 1)
    expected = transition_posterior(push, replace, pop, backend=backend)
    with torch.inference_mode():
        actual = transition_posterior(push + 0, replace + 0, pop + 0, backend=backend)
    for x, y in zip(actual, expected, strict=True):
        assert torch.equal(x, y)


def test_torch_func(backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(2, 5, 1, 2, 1)]

    def last(push: Tensor) -> Tensor:
        return log_partition([push, *inputs[1:]], backend)[:, -1].sum()

    assert_normwise_close(torch.func.grad(last)(inputs[0]), transition_posterior(*inputs[:3]).push, 1e-10)


def test_mistakes() -> None:
    push, replace, pop, *_ = random_inputs(2, 3, 2, 2, 1)
    with pytest.raises(ValueError, match=r"^pop: expected shape"):
        transition_posterior(push, replace, pop[:, :2])
    with pytest.raises(ValueError, match="window: expected at least 1, got 0"):
        transition_posterior(push, replace, pop, window=0)
    with pytest.raises(ValueError, match="pop: expected at least one state and one symbol, got shape"):
        transition_posterior(push[:, :, :, :0, :, :0], replace[:, :, :, :0, :, :0], pop[:, :, :, :0])
    with pytest.raises(ValueError, match="backend must be one of"):
        transition_posterior(push, replace, pop, backend="fast")


def test_probability_of_allowed_transitions(backend: str) -> None:
    """The share of the weight of all runs over a prefix that allowed runs have, and its gradient."""
    inputs = random_inputs(3, 4, 2, 2, 1, std=2)[:3]
    allowed = Transitions(*(torch.rand_like(x) < 0.6 for x in inputs))
    actual = allowed_log_probability(*inputs, allowed=allowed, backend=backend)
    for b, length in ((0, 4), (1, 2), (2, 3), (2, 1)):
        runs = list(enumerated_runs([x[b, :length].detach() for x in inputs]))
        kept = [
            math.exp(run.log_weight)
            for run in runs
            if all(getattr(allowed, operation)[b, t][index] for t, (operation, index) in enumerate(run.steps))
        ]
        assert actual[b, length - 1].exp().item() == pytest.approx(
            sum(kept) / sum(math.exp(run.log_weight) for run in runs)
        )
    gradients = torch.autograd.grad(actual[0, -1], inputs)
    restricted = [x.masked_fill(~mask, -math.inf) for x, mask in zip(inputs, allowed, strict=True)]
    difference = zip(transition_posterior(*restricted), transition_posterior(*inputs), strict=True)
    for gradient, (of_allowed, of_all) in zip(gradients, difference, strict=True):
        assert_normwise_close(gradient[0], (of_allowed - of_all)[0], 1e-10)


@pytest.mark.parametrize(("wrong", "found"), [(torch.ones(1), "torch.float32"), (torch.tensor([True] * 3), "shape")])
def test_wrong_masks(wrong: Tensor, found: str) -> None:
    inputs = random_inputs(2, 3, 2, 2, 1)[:3]
    everything = Transitions(*(torch.ones_like(x, dtype=torch.bool) for x in inputs))
    with pytest.raises(ValueError, match=rf"^allowed\.pop: expected booleans .*\(2, 3, 2, 2, 2\), got .*{found}"):
        allowed_log_probability(*inputs, allowed=everything._replace(pop=wrong))


def test_no_run_is_allowed() -> None:
    inputs = random_inputs(1, 3, 2, 2, 1)[:3]
    nothing = Transitions(*(torch.zeros_like(x, dtype=torch.bool) for x in inputs))
    assert allowed_log_probability(*inputs, allowed=nothing).eq(-math.inf).all()
    forbidden = [torch.full_like(x, -math.inf) for x in inputs]
    assert allowed_log_probability(*forbidden, allowed=nothing).eq(-math.inf).all()
