"""Inputs for the tests of the superposition stack."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.helpers import INSTRUCTION_SETS

FAST = ["pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)]


def random_inputs(
    batch_size: int, length: int, size: int, *, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    actions = torch.randn(batch_size, length, 3, dtype=dtype).mul(2).softmax(2).requires_grad_()
    values = torch.randn(batch_size, length, size, dtype=dtype).requires_grad_()
    return actions, values


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    loss = (readings * cotangent).sum()
    return torch.autograd.grad(loss, inputs, materialize_grads=True, retain_graph=True)
