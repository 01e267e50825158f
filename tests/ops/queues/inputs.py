"""The queue by its backends and its steps, for tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import QueueState, queue
from tests.ops.stratification.inputs import step_through

BACKENDS = ("reference", "pytorch")
WAYS = (*BACKENDS, "state")


def initial_state(values: Tensor) -> QueueState:
    return QueueState.initial(batch_size=values.size(0), size=values.size(2), dtype=values.dtype, device=values.device)


def compute(inputs: Sequence[Tensor], how: str, *, read_strength: float | Tensor = 1.0) -> Tensor:
    pop, push, values = inputs
    if how == "state":
        return step_through(inputs, initial_state(values), read_strength)
    return queue(pop, push, values, read_strength=read_strength, backend=how)


def random_read_strength(values: Tensor) -> Tensor:
    """From 0 to 3, (B, n)."""
    return (3 * torch.rand(values.shape[:2], dtype=values.dtype)).requires_grad_()
