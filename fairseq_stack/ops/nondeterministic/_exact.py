"""Readings that are exact for all finite log weights, and their gradients: slow, for the sequences that need it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .._operators import with_autograd
from ._tracked_columns import TrackedColumns


def exact_readings(logits: Tensor, vectors: Tensor, num_states: int, window: int | None) -> Tensor:
    """The readings (B, n, C, m) in float64.

    Args:
        logits: log weights (B, n, C, 2 C + Q).
        vectors: v_0..v_n, (B, n + 1, m).
        num_states: Q.
        window: D, or None for unlimited memory.
    """
    bottom, *values = vectors.double().unbind(1)
    columns = TrackedColumns.initial(bottom, num_states, logits.shape[2] // num_states, window, None)
    readings = [vectors.new_zeros(len(vectors), 0, logits.shape[2], vectors.shape[2], dtype=torch.float64)]
    for logits_t, value in zip(logits.unbind(1), values, strict=True):
        # The backward pass computes each step again: what a step leaves for it takes O(t^2) memory.
        reading, columns = checkpoint(columns.advance, logits_t, value, use_reentrant=False)
        readings.append(reading[:, None])
    return torch.cat(readings, 1)


def exact_gradients(
    grad: Tensor, logits: Tensor, vectors: Tensor, num_states: int, window: int | None
) -> tuple[Tensor, Tensor]:
    """The gradients of the log weights and of the vectors, given the gradient of the readings."""

    def differentiate() -> tuple[Tensor, Tensor]:
        leaves = logits.detach().requires_grad_(), vectors.detach().requires_grad_()
        readings = exact_readings(*leaves, num_states, window)
        of_logits, of_vectors = torch.autograd.grad(readings, leaves, grad.double())
        return of_logits, of_vectors

    return with_autograd(differentiate)
