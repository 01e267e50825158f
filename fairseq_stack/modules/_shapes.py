"""Checks of what modules are given."""

from __future__ import annotations

import torch
from torch import Tensor


def check_shape(name: str, tensor: Tensor, *shape: int | str) -> None:
    """Raise ValueError unless a tensor has this shape, in which a letter stands for any size."""
    fits = [isinstance(axis, str) or axis == size for axis, size in zip(shape, tensor.shape, strict=False)]
    if tensor.dim() != len(shape) or not all(fits):
        raise ValueError(f"{name}: expected shape ({', '.join(map(str, shape))}), got {tuple(tensor.shape)}")


def check_mask(name: str, mask: Tensor, inputs: Tensor) -> None:
    """Raise ValueError unless a mask is boolean and has an element for each of the inputs (B, n, ...)."""
    if mask.dtype != torch.bool or mask.shape != inputs.shape[:2]:
        raise ValueError(
            f"{name}: expected a boolean tensor of shape {tuple(inputs.shape[:2])}, true at padding, got "
            f"{mask.dtype} of shape {tuple(mask.shape)}"
        )
