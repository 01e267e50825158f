"""Checks of what modules are given."""

from __future__ import annotations

from torch import Tensor


def check_shape(name: str, tensor: Tensor, *shape: int | str) -> None:
    """Raise ValueError unless a tensor has this shape, in which a letter stands for any size."""
    fits = [isinstance(axis, str) or axis == size for axis, size in zip(shape, tensor.shape, strict=False)]
    if tensor.dim() != len(shape) or not all(fits):
        raise ValueError(f"{name}: expected shape ({', '.join(map(str, shape))}), got {tuple(tensor.shape)}")
