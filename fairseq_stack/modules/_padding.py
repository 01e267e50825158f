"""Padding on the left, moved to the right: there it comes after all symbols, and a recurrence need not know of it."""

from __future__ import annotations

import torch
from torch import Tensor


def num_left(padding: Tensor) -> Tensor:
    """How many symbols of padding each row begins with, (B,), for a mask (B, n) that is true at padding."""
    return padding.long().cumprod(1).sum(1)


def rotate(inputs: Tensor, shifts: Tensor) -> Tensor:
    """Rotate row b of ``inputs`` (B, n, ...) to the left by ``shifts[b]``."""
    batch_size, length = inputs.shape[:2]
    steps = torch.arange(length, device=inputs.device)
    sources = (steps + shifts.unsqueeze(1)) % length
    return inputs.gather(1, sources.view(batch_size, length, *[1] * (inputs.dim() - 2)).expand_as(inputs))
