"""Inputs for the tests of the stratification stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.ops import StratificationStackState
from fairseq_stack.ops._item_state import ItemState
from tests.helpers import assert_normwise_close

ARGUMENTS = ("pop", "push", "values")


def random_inputs(
    batch_size: int, length: int, size: int, *, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    pop = torch.rand(batch_size, length, dtype=dtype).requires_grad_()
    push = torch.rand(batch_size, length, dtype=dtype).requires_grad_()
    values = torch.randn(batch_size, length, size, dtype=dtype).requires_grad_()
    return pop, push, values


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((readings * cotangent).sum(), inputs, materialize_grads=True)


def assert_golden(golden: Mapping[str, Any], compute: Callable[..., Tensor]) -> None:
    """The readings that ``compute`` finds, and their gradients, are those of a golden file of a stack or a queue."""
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ARGUMENTS]
    readings = compute(inputs)
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    if "readings_strength_2" in golden:
        assert_normwise_close(compute(inputs, read_strength=2), golden["readings_strength_2"], 1e-9)
    has_ties = "cotangent" not in golden  # Strengths that are used up exactly: the gradient is not unique.
    cotangent = torch.ones_like(readings) if has_ties else torch.tensor(golden["cotangent"])
    for key, gradient in zip(ARGUMENTS, gradients(readings, inputs, cotangent), strict=True):
        if has_ties:
            assert gradient.isfinite().all(), key
        else:
            assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


def step_through(inputs: Iterable[Tensor], state: ItemState, read_strength: float | Tensor = 1.0) -> Tensor:
    """The readings of the steps of a stack or a queue."""
    pop, push, values = inputs
    readings = []
    for t in range(values.size(1)):
        amount = read_strength[:, t] if isinstance(read_strength, Tensor) else read_strength
        reading, state = state.step(pop[:, t], push[:, t], values[:, t], read_strength=amount)
        readings.append(reading)
    return torch.stack(readings, dim=1)


def initial_state(values: Tensor) -> StratificationStackState:
    return StratificationStackState.initial(
        batch_size=values.size(0), size=values.size(2), dtype=values.dtype, device=values.device
    )
