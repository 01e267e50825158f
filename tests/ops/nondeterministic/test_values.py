"""The nondeterministic stack against golden values, the enumeration of all runs, and its own reference."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_normwise_close, gradients, hostile
from tests.ops.nondeterministic.inputs import (
    assert_equal_results,
    random_inputs,
    vectors_of,
)
from tests.ops.nondeterministic.runs import enumerated_runs
from tests.ops.stacks import fast_backends

# (n, Q, S, m), without Q = 2, S = 3: test_every_stack.py has these.
SIZES = [(1, 1, 1, 1), (2, 3, 1, 2), (3, 1, 4, 1), (12, 3, 2, 3), (21, 1, 1, 2), (26, 2, 2, 3)]


@pytest.mark.parametrize(("length", "num_states", "num_symbols"), [(1, 3, 3), (3, 2, 3), (4, 2, 2), (6, 2, 1)])
def test_enumeration_of_all_runs(length: int, num_states: int, num_symbols: int) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, 2, std=1.5, batched_bottom=True)
    expected = torch.zeros(2, length + 1, length + 1, num_states, num_symbols, dtype=torch.float64)
    for b in range(2):
        for run in enumerated_runs([x[b] for x in inputs[:3]], prefixes=True):
            state = run.steps[-1][1][2] if run.steps else 0
            symbol, pushed = run.stacks[-1][-1]
            expected[b, len(run.steps), pushed, state, symbol] += math.exp(run.log_weight)
    expected = expected[:, 1:] / expected[:, 1:].sum((2, 3, 4), keepdim=True)
    expected_readings = torch.einsum("btirs,bim->btrsm", expected, vectors_of(inputs))
    for backend in ("reference", *fast_backends()):
        readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
        assert_normwise_close(weights, expected, 1e-12, "weights")
        assert_normwise_close(readings, expected_readings, 1e-12, "readings")


@pytest.mark.parametrize("std", [hostile(0.1), 1.0, hostile(10.0), hostile(30.0), 100.0])
def test_equals_reference(std: float) -> None:
    for length, num_states, num_symbols, size in SIZES:
        inputs = random_inputs(2, length, num_states, num_symbols, size, std=std)
        # The reference differentiates an average by subtraction, which leaves errors of about 1e-16.
        assert_equal_results(inputs, rounding=1e-14)


def test_what_cannot_be_taken_at_the_first_step_does_not_matter(backend: str) -> None:
    inputs = random_inputs(2, 4, 2, 2, 3)
    expected = nondeterministic_stack(*inputs, backend=backend)
    with torch.no_grad():
        inputs[2][:, 0] += 2000
        for weights in inputs[:3]:
            weights[:, 0, 1] += 2000
            weights[:, 0, :, 1] += 2000
    assert_normwise_close(nondeterministic_stack(*inputs, backend=backend), expected, 1e-12)


def test_saved_tensor_hooks_see_the_inner_weights() -> None:
    inputs, backend = random_inputs(2, 20, 2, 2, 3), "pytorch"
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
