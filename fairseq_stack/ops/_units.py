"""Readings are linear in the pushed vectors: with unit vectors in their place, they are their own weights."""

from __future__ import annotations

import torch
from torch import Tensor


def units_like(values: Tensor, more: int = 0) -> Tensor:
    """e_1..e_n for each sequence, (B, n, n), in the place of v_1..v_n (B, n, ...), or some more."""
    length = values.shape[1] + more
    return torch.eye(length, dtype=values.dtype, device=values.device).expand(len(values), -1, -1)
