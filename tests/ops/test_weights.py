"""The weights of the pushed vectors in the readings of the superposition and the stratification stack."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import stratification_stack, superposition_stack
from tests.helpers import INSTRUCTION_SETS, assert_normwise_close, use_backend

Inputs = tuple[Tensor, ...]
SUPERPOSITION = ["reference", "pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)]
CASES = [*product(["superposition"], SUPERPOSITION), *product(["stratification"], ["reference", "pytorch"])]


def actions_of(stack: str, batch_size: int, length: int) -> Inputs:
    if stack == "superposition":
        return (torch.randn(batch_size, length, 3, dtype=torch.float64).softmax(2).requires_grad_(),)
    return tuple(torch.rand(batch_size, length, dtype=torch.float64).requires_grad_() for _ in range(2))


STACKS: dict[str, Callable[..., Any]] = {"superposition": superposition_stack, "stratification": stratification_stack}


@pytest.fixture(params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    stack, backend = request.param
    return stack, use_backend(backend, monkeypatch)


@pytest.mark.parametrize("size", [2, 40])
def test_they_are_what_readings_are_made_of(case: tuple[str, str], size: int) -> None:
    stack, backend = case
    actions, values = actions_of(stack, 3, 19), torch.randn(3, 19, size, dtype=torch.float64)
    readings, weights = STACKS[stack](*actions, values, backend=backend, return_weights=True)
    assert torch.equal(readings, STACKS[stack](*actions, values, backend=backend))
    assert_normwise_close(weights @ values, readings, 1e-12)
    cotangent = torch.randn_like(readings)
    of_weights = torch.autograd.grad(((weights @ values) * cotangent).sum(), actions, retain_graph=True)
    for actual, expected in zip(of_weights, torch.autograd.grad((readings * cotangent).sum(), actions), strict=True):
        assert_normwise_close(actual, expected, 1e-9)


def test_of_limited_reading() -> None:
    pop, push = (x.detach() for x in actions_of("stratification", 2, 9))
    for read_strength in (0.5, torch.rand(2, 9, dtype=torch.float64)):
        actual = [
            stratification_stack(
                pop, push, torch.ones(2, 9, 1).double(), read_strength=read_strength, backend=x, return_weights=True
            )
            for x in ("pytorch", "reference")
        ]
        assert_normwise_close(actual[0][1], actual[1][1], 1e-12)
        assert (actual[0][1].sum(2) <= torch.as_tensor(read_strength) + 1e-12).all()


def test_values_that_are_not_finite(case: tuple[str, str]) -> None:
    """Weights do not depend on the values, and are NaN from a step on whose actions are not finite."""
    stack, backend = case
    actions = [x.detach() for x in actions_of(stack, 2, 6)]
    values = torch.randn(2, 6, 3, dtype=torch.float64)
    _, expected = STACKS[stack](*actions, values, backend=backend, return_weights=True)
    values[0, 2, 1] = torch.nan
    assert torch.equal(STACKS[stack](*actions, values, backend=backend, return_weights=True)[1], expected)
    actions[0][0, 3] = torch.inf
    _, actual = STACKS[stack](*actions, values, backend=backend, return_weights=True)
    assert actual[0, 3:].isnan().all()
    assert torch.equal(actual[0, :3], expected[0, :3]) and torch.equal(actual[1], expected[1])


def test_dtypes_and_empty_batches(case: tuple[str, str]) -> None:
    stack, backend = case
    for dtype, batch_size, length in ((torch.float32, 2, 7), (torch.bfloat16, 2, 7), (torch.float64, 0, 3)):
        actions = [x.detach().to(dtype) for x in actions_of(stack, batch_size, length)]
        values = torch.randn(batch_size, length, 4).to(dtype)
        readings, weights = STACKS[stack](*actions, values, backend=backend, return_weights=True)
        assert (readings.dtype, weights.dtype, weights.shape) == (dtype, dtype, (batch_size, length, length))
    readings, weights = STACKS[stack](*(x[:, :0] for x in actions), values[:, :0], backend=backend, return_weights=True)
    assert weights.shape == (0, 0, 0)
