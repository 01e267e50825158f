"""The equations of docs/algorithm.md, evaluated literally, against the paper's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_normwise_close
from tests.ops.nondeterministic import algorithm
from tests.ops.nondeterministic.inputs import random_inputs, vectors_of

NAMES = ("push", "replace", "pop", "vectors")


def inputs_of(length: int, num_states: int, num_symbols: int, *, std: float, masked: float) -> list[Tensor]:
    """Log weights and v_0..v_n of three sequences."""
    inputs = random_inputs(3, length, num_states, num_symbols, std=std, masked=masked, batched_bottom=True)
    return [*inputs[:3], vectors_of(inputs).detach().requires_grad_()]


def reference(push: Tensor, replace: Tensor, pop: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Readings (B, n, C, m) and weights (B, n, n + 1, C)."""
    readings, weights = nondeterministic_stack(
        push, replace, pop, vectors[:, 1:], vectors[:, 0], backend="reference", return_weights=True
    )
    return readings.flatten(2, 3), weights.flatten(3)


def assert_equal_results(inputs: list[Tensor]) -> None:
    readings, weights = reference(*inputs)
    runs = algorithm.forward(*(x.detach() for x in inputs))
    assert_normwise_close(runs.weights, weights, 1e-12, "weights")
    assert_normwise_close(runs.readings, readings, 1e-12, "readings")
    cotangents = torch.randn_like(readings), torch.randn_like(weights)
    loss = (readings * cotangents[0]).sum() + (weights * cotangents[1]).sum()
    expected = torch.autograd.grad(loss, inputs, materialize_grads=True)
    computed = algorithm.backward(runs, inputs[3].detach(), *cotangents)
    for name, actual, wanted in zip(NAMES, computed, expected, strict=True):
        assert_normwise_close(actual.reshape(wanted.shape), wanted, 1e-11, name)


@pytest.mark.parametrize("masked", [0.0, 0.4])
@pytest.mark.parametrize(
    ("length", "num_states", "num_symbols"),
    [(0, 2, 3), (1, 1, 1), (1, 2, 3), (2, 2, 3), (2, 3, 2), (3, 3, 2), (6, 1, 1), (17, 2, 3)],
)
def test_values_and_gradients_equal_the_reference(
    length: int, num_states: int, num_symbols: int, masked: float
) -> None:
    assert_equal_results(inputs_of(length, num_states, num_symbols, std=2.0, masked=masked))


def test_sequences_without_runs() -> None:
    inputs = inputs_of(7, 2, 2, std=1.0, masked=0.0)
    with torch.no_grad():
        for log_weights in inputs[:3]:
            log_weights[1, 4] = -torch.inf
    runs = algorithm.forward(*(x.detach() for x in inputs))
    assert not runs.weights[1, 4:].any()
    assert runs.weights[1, 3].any()
    assert_equal_results(inputs)


def test_gradients_where_one_run_dominates() -> None:
    """With the dominant run's vector 0 the reference is exact; elsewhere, the algorithm is exact all the same."""
    *log_weights, vectors = inputs_of(7, 2, 3, std=1.0, masked=0.0)
    with torch.no_grad():
        log_weights[0][:, :, :, :, 0, 0] += 40
    cotangent = torch.zeros(3, 7, 6, 4, dtype=torch.float64)
    cotangent[:, -1] = torch.randn(3, 1, 4, dtype=torch.float64)  # the same for all (r, y): vectors may be shifted
    centred = [*log_weights, (vectors - vectors[:, -1:]).detach()]
    readings, _ = reference(*centred)
    expected = torch.autograd.grad((readings * cotangent).sum(), log_weights)
    runs = algorithm.forward(*(x.detach() for x in (*log_weights, vectors)))
    computed = algorithm.backward(runs, vectors.detach(), cotangent, torch.zeros_like(runs.weights))
    for name, actual, wanted in zip(NAMES, computed, expected, strict=False):
        assert float(wanted.abs().max()) < 1e-10
        assert_normwise_close(actual.reshape(wanted.shape), wanted, 1e-9, name)
