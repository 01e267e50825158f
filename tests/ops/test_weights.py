"""The weights of pushed vectors: readings of the superposition and the stratification stack for unit vectors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import stratification_stack, superposition_stack
from tests.helpers import INSTRUCTION_SETS, assert_normwise_close, use_backend

SUPERPOSITION = ["reference", "pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)]
CASES = [*product(["superposition"], SUPERPOSITION), *product(["stratification"], ["reference", "pytorch"])]


def actions_of(stack: str, batch_size: int, length: int) -> tuple[Tensor, ...]:
    if stack == "superposition":
        return (torch.randn(batch_size, length, 3, dtype=torch.float64).softmax(2).requires_grad_(),)
    return tuple(torch.rand(batch_size, length, dtype=torch.float64).requires_grad_() for _ in range(2))


STACKS: dict[str, Callable[..., Tensor]] = {
    "superposition": superposition_stack,
    "stratification": stratification_stack,
}


@pytest.mark.parametrize(("stack", "backend"), CASES, ids=map("-".join, CASES))
@pytest.mark.parametrize("size", [2, 40])
def test_they_are_what_readings_are_made_of(
    stack: str, backend: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = use_backend(backend, monkeypatch)
    actions, values = actions_of(stack, 3, 19), torch.randn(3, 19, size, dtype=torch.float64)
    readings = STACKS[stack](*actions, values, backend=backend)
    weights = STACKS[stack](*actions, torch.eye(19).double().expand(3, -1, -1), backend=backend)
    assert_normwise_close(weights @ values, readings, 1e-12)
    cotangent = torch.randn_like(readings)
    of_weights = torch.autograd.grad(((weights @ values) * cotangent).sum(), actions)
    for actual, expected in zip(of_weights, torch.autograd.grad((readings * cotangent).sum(), actions), strict=True):
        assert_normwise_close(actual, expected, 1e-9)


def test_of_limited_reading() -> None:
    pop, push = (x.detach() for x in actions_of("stratification", 2, 9))
    units = torch.eye(9).double().expand(2, -1, -1)
    for read_strength in (0.5, torch.rand(2, 9, dtype=torch.float64)):
        actual, expected = (
            stratification_stack(pop, push, units, read_strength=read_strength, backend=x)
            for x in ("pytorch", "reference")
        )
        assert_normwise_close(actual, expected, 1e-12)
        assert (actual.sum(2) <= torch.as_tensor(read_strength) + 1e-12).all()
