"""The nondeterministic stack where transitions are forbidden, or runs are very likely or very unlikely."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from fairseq_stack.ops.nondeterministic import pytorch
from fairseq_stack.ops.nondeterministic._steps import readings_by_steps
from tests.helpers import assert_normwise_close, gradients
from tests.ops.nondeterministic.adversarial import adversarial
from tests.ops.nondeterministic.inputs import ARGUMENTS, assert_equal_results, random_inputs, vectors_of


@pytest.mark.parametrize("masked", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("std", [1.0, 30.0])
def test_forbidden_transitions(masked: float, std: float) -> None:
    assert_equal_results(random_inputs(6, 12, 2, 3, 3, std=std, masked=masked))


def test_forbidden_transitions_out_of_unreachable_states_may_grow(backend: str) -> None:
    """Weights that no run uses do not become too large for a number and spoil the others."""
    inputs = random_inputs(2, 16, 2, 2, 3)
    with torch.no_grad():
        for weights in inputs[:2]:
            weights[:, :, 1] += 200
            weights[:, :, 0, :, 1] = -torch.inf
        inputs[2][:, :, 0, :, 1] = -torch.inf
    one_state = [x.detach()[:, :, :1, :, :1].requires_grad_() for x in inputs[:3]] + inputs[3:]
    readings = nondeterministic_stack(*inputs, backend=backend)
    expected = nondeterministic_stack(*one_state, backend="reference")
    assert_normwise_close(readings[:, :, :1], expected, 1e-9)
    cotangent = torch.randn_like(expected)
    wanted = gradients(expected, one_state, cotangent)
    for i, gradient in enumerate(gradients(readings[:, :, :1], inputs, cotangent)):
        assert_normwise_close(gradient[:, :, :1, :, :1] if i < 3 else gradient, wanted[i], 1e-9, ARGUMENTS[i])


def test_derivatives_that_grow_where_no_run_passes() -> None:
    """Symbol 1 is never on the stack. A derivative there is a large weight more in each step, until it is infinite."""
    inputs = random_inputs(1, 40, 1, 2, 1)
    with torch.no_grad():
        inputs[0][..., 1] = inputs[1][:, :, :, 0, :, 1] = -torch.inf
        inputs[1][:, :, :, 1, :, 1] = 20
    assert_equal_results(inputs)


def test_reading_is_zero_where_no_run_is_left(backend: str) -> None:
    inputs = random_inputs(3, 8, 2, 2, 3)
    with torch.no_grad():
        for weights in inputs[:3]:
            weights[1, 4] = -torch.inf
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert (readings[1, 4:] == 0).all()
    assert (weights[1, 4:] == 0).all()
    expected = nondeterministic_stack(*[x[:, :4] for x in inputs[:4]] + inputs[4:], backend="reference")
    assert_normwise_close(readings[:, :4], expected, 1e-12)
    for name, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.ones_like(readings)), strict=True):
        assert gradient.isfinite().all(), name
        if name != "bottom":
            assert gradient[1, :4].any() or name == "pop"
            assert not gradient[1, 4:].any()


def test_only_what_does_not_fit_into_tiles_goes_by_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def spy(logits: Tensor, *others: Any) -> Tensor:
        sizes.append(len(logits))
        return readings_by_steps(logits, *others)

    monkeypatch.setattr(pytorch, "readings_by_steps", spy)
    far = random_inputs(3, 9, 2, 3, 5, std=5.0)
    with torch.no_grad():
        far[0][1] *= 20
    for inputs, by_steps in (
        (random_inputs(2, 60, 2, 3, 5), []),
        (random_inputs(2, 20, 2, 3, 5, masked=0.5), []),
        (adversarial("pushes", 200.0, 15), [2]),
        (far, [1]),
    ):
        sizes.clear()
        nondeterministic_stack(*inputs, backend="pytorch")
        assert sizes == by_steps


@pytest.mark.parametrize("weight", [5.0, 20.0, 60.0])
def test_gradient_where_one_run_dominates(weight: float, fast_backend: str) -> None:
    """The gradients are tiny, and have no error but one that is tiny beside them.

    With a loss on one reading, the same for all (r, y), adding a vector to all vectors changes no gradient of
    the log weights. The reference is exact if the vector of the dominant run is 0.
    """
    inputs = random_inputs(2, 9, 2, 3, 3)
    with torch.no_grad():
        for t, best in enumerate((0, 0, 0, 0, 2, 2, 2, 1, 1)):
            inputs[best][:, t, :, :, 0] += weight
    readings, weights = nondeterministic_stack(*inputs, backend=fast_backend, return_weights=True)
    top = weights[:, -1].sum((2, 3)).argmax(1)
    dominant = vectors_of(inputs).detach()[torch.arange(2), top]
    centred = [*inputs[:3], inputs[3] - dominant[:, None], inputs[4] - dominant]
    expected = nondeterministic_stack(*centred, backend="reference")
    cotangent = torch.zeros_like(readings)
    cotangent[:, -1] = torch.randn(2, 1, 1, 3, dtype=torch.float64)
    wanted = gradients(expected, inputs[:3], cotangent)
    assert max(float(x.abs().max()) for x in wanted) < 10 * math.exp(-weight / 2)
    for name, actual, want in zip(ARGUMENTS, gradients(readings, inputs[:3], cotangent), wanted, strict=False):
        assert_normwise_close(actual, want, 1e-9, name)
