"""The nondeterministic stack against golden values, the enumeration of all runs, and its own reference."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_normwise_close, hostile
from tests.ops.nondeterministic.inputs import (
    ARGUMENTS,
    assert_equal_results,
    choose,
    gradients,
    random_inputs,
    vectors_of,
)

# (n, Q, S, m)
SIZES = [(1, 1, 1, 1), (1, 2, 3, 2), (2, 3, 1, 2), (3, 1, 4, 1), (7, 2, 3, 5), (12, 3, 2, 3), (21, 1, 1, 2)]


def enumerated_weights(push: Tensor, replace: Tensor, pop: Tensor) -> Tensor:
    """W (n, n + 1, Q, S) of one sequence: all runs, each with a tuple of (symbol, vector's step) as its stack."""
    length, num_states, num_symbols = push.shape[:3]
    delta = [x.exp().tolist() for x in (push, replace, pop)]
    weights = np.zeros((length + 1, length + 1, num_states, num_symbols))

    def run(t: int, state: int, stack: tuple[tuple[int, int], ...], weight: float) -> None:
        symbol, vector = stack[-1]
        weights[t, vector, state, symbol] += weight
        if t == length:
            return
        pushes, replacements, pops = (x[t][state][symbol] for x in delta)
        for r in range(num_states):
            for y in range(num_symbols):
                run(t + 1, r, (*stack, (y, t + 1)), weight * pushes[r][y])
                run(t + 1, r, (*stack[:-1], (y, vector)), weight * replacements[r][y])
            if len(stack) > 1:
                run(t + 1, r, stack[:-1], weight * pops[r])

    run(0, 0, ((0, 0),), 1.0)
    return torch.tensor(weights[1:] / weights[1:].sum((1, 2, 3), keepdims=True))


@pytest.mark.parametrize(("length", "num_states", "num_symbols"), [(1, 3, 3), (3, 2, 3), (5, 2, 2), (6, 2, 1)])
def test_enumeration_of_all_runs(length: int, num_states: int, num_symbols: int, backend: str) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, 2, std=1.5, batched_bottom=True)
    expected = torch.stack([enumerated_weights(*x) for x in zip(*inputs[:3], strict=True)])
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert_normwise_close(weights, expected, 1e-12, "weights")
    expected_readings = torch.einsum("btirs,bim->btrsm", expected, vectors_of(inputs))
    assert_normwise_close(readings, expected_readings, 1e-12, "readings")


@pytest.mark.parametrize("std", [hostile(0.1), 1.0, hostile(10.0), hostile(30.0), 100.0])
def test_equals_reference(std: float) -> None:
    for length, num_states, num_symbols, size in SIZES:
        inputs = random_inputs(2, length, num_states, num_symbols, size, std=std)
        # The reference differentiates an average by subtraction, which leaves errors of about 1e-16.
        assert_equal_results(inputs, rounding=1e-14)


def test_equals_reference_on_a_long_sequence() -> None:
    assert_equal_results(random_inputs(1, 26, 2, 2, 3))


@pytest.mark.parametrize("masked", [0.0, 0.4])
@pytest.mark.parametrize("length", [5, 6, 7, 14, 15, 16, 17, 37, 38, 63])
def test_large_and_small_tiles_agree(length: int, masked: float, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = random_inputs(2, length, 2, 3, 2, std=3.0, masked=masked)
    cotangent = torch.randn(2, length, 2, 3, 2, dtype=torch.float64)
    results = []
    for name in ("pytorch", "pytorch-exponents"):
        readings = nondeterministic_stack(*inputs, backend=choose(name, monkeypatch))
        results.append((readings, *gradients(readings, inputs, cotangent)))
    for name, large, small in zip(("readings", *ARGUMENTS), *results, strict=True):
        assert_normwise_close(large, small, 1e-12, name)


def test_gradcheck_of_weights(backend: str) -> None:
    inputs = random_inputs(1, 4, 1, 2, 1)

    def both(*x: Tensor) -> tuple[Tensor, Tensor]:
        return nondeterministic_stack(*x, backend=backend, return_weights=True)

    assert torch.autograd.gradcheck(both, inputs)


def test_weights_give_the_readings(backend: str) -> None:
    inputs = random_inputs(3, 9, 2, 3, 4)
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert weights.shape == (3, 9, 10, 2, 3)
    assert (weights >= 0).all()
    assert_normwise_close(weights.sum((2, 3, 4)), torch.ones(3, 9), 1e-12)
    assert_normwise_close(torch.einsum("btirs,bim->btrsm", weights, vectors_of(inputs)), readings, 1e-12)
    assert_normwise_close(nondeterministic_stack(*inputs, backend=backend), readings, 1e-12)
    for t in range(1, 10):
        assert (weights[:, t - 1, t + 1 :] == 0).all(), "a vector is read before it is pushed"


def test_nothing_can_be_popped_at_the_first_step(backend: str) -> None:
    inputs = random_inputs(2, 1, 2, 2, 3)
    readings = nondeterministic_stack(*inputs, backend=backend)
    assert not gradients(readings, inputs, torch.randn_like(readings))[2].any()


def test_what_cannot_be_taken_at_the_first_step_does_not_matter(backend: str) -> None:
    inputs = random_inputs(2, 4, 2, 2, 3)
    expected = nondeterministic_stack(*inputs, backend=backend)
    with torch.no_grad():
        inputs[2][:, 0] += 2000
        for weights in inputs[:3]:
            weights[:, 0, 1] += 2000
            weights[:, 0, :, 1] += 2000
    assert_normwise_close(nondeterministic_stack(*inputs, backend=backend), expected, 1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.data())
def test_properties(backend: str, data: st.DataObject) -> None:
    length, num_states, num_symbols = (data.draw(st.integers(1, most)) for most in (6, 3, 3))
    torch.manual_seed(data.draw(st.integers(0, 2**31)))
    std = data.draw(st.sampled_from([0.0, 1.0, 20.0]))
    inputs = [x.detach() for x in random_inputs(2, length, num_states, num_symbols, 3, std=std)]
    push, replace, pop, values, bottom = inputs

    def read(*inputs: Tensor) -> Tensor:
        return nondeterministic_stack(*inputs, backend=backend)

    readings = read(*inputs)
    # A factor for all weights of a step does not matter.
    factor = torch.randn(2, length, dtype=torch.float64).mul(data.draw(st.sampled_from([1.0, 300.0])))
    scaled = [x + factor.reshape(2, length, *(1,) * (x.dim() - 2)) for x in (push, replace, pop)]
    assert_normwise_close(read(*scaled, values, bottom), readings, 1e-9)
    # Linear in the vectors.
    ones = read(push, replace, pop, torch.ones_like(values), torch.ones_like(bottom))
    assert_normwise_close(read(push, replace, pop, 3 * values - 1, 3 * bottom - 1), 3 * readings - ones, 1e-9)
    # All vectors equal: their mean.
    assert_normwise_close(ones.sum((2, 3)), torch.ones_like(values), 1e-9)
    # Causal: what follows does not matter.
    cut = data.draw(st.integers(0, length))
    assert_normwise_close(read(*(x[:, :cut] for x in inputs[:4]), bottom), readings[:, :cut], 1e-9)
    # Sequences of a batch do not interact.
    assert_normwise_close(read(*(x[1:] for x in inputs[:4]), bottom), readings[1:], 1e-9)
    # States other than the start state, and symbols other than the bottom symbol, have no order.
    states = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(num_states - 1) + 1])
    symbols = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(num_symbols - 1) + 1])
    renamed = [x[:, :, states][:, :, :, symbols][:, :, :, :, states] for x in (push, replace, pop)]
    renamed[:2] = [x[..., symbols] for x in renamed[:2]]
    assert_normwise_close(read(*renamed, values, bottom), readings[:, :, states][:, :, :, symbols], 1e-9)


@pytest.mark.parametrize("name", ["pytorch", "pytorch-exponents"])
def test_saved_tensor_hooks_see_the_inner_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = random_inputs(2, 20, 2, 2, 3)
    backend = choose(name, monkeypatch)
    cotangent = torch.randn(2, 20, 2, 2, 3, dtype=torch.float64)
    expected = gradients(nondeterministic_stack(*inputs, backend=backend), inputs, cotangent)
    saved: list[Tensor] = []

    def pack(x: Tensor) -> int:
        saved.append(x.clone())
        return len(saved) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, saved.__getitem__):
        readings = nondeterministic_stack(*inputs, backend=backend)
    assert sum(x.numel() for x in saved) > 2 * (20 * 21 / 2) * (4 * 4 + 4 * 2)
    for actual, wanted in zip(gradients(readings, inputs, cotangent), expected, strict=True):
        assert torch.equal(actual, wanted)
