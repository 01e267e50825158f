"""Readings are linear in the pushed vectors: with unit vectors in their place, they are their own weights."""

from __future__ import annotations

import torch
from torch import Tensor


def units_like(values: Tensor) -> Tensor:
    """e_1..e_n for each sequence, (B, n, n), in the place of v_1..v_n (B, n, m)."""
    batch_size, length, _ = values.shape
    return torch.eye(length, dtype=values.dtype, device=values.device).repeat(batch_size, 1, 1)
