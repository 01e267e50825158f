"""Checks of the tensors that the stacks are given, with one error message for all of them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


class Sizes:
    """Binds the letters of shapes such as ``"B n Q S"`` to sizes, in the order in which arguments are checked.

    >>> sizes = Sizes()
    >>> sizes.check("actions", actions, "B n 3")    # doctest: +SKIP
    >>> sizes["B"]                                  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self._sizes: dict[str, int] = {}
        self._first: tuple[str, Tensor] | None = None

    def __getitem__(self, letter: str) -> int:
        return self._sizes[letter]

    def check(self, name: str, tensor: Tensor, shape: str) -> None:
        """Check that ``tensor`` is a floating-point tensor of this shape, with the dtype and device of the first one.

        Args:
            name: the argument's name, for the message.
            shape: its axes, separated by spaces: a number stands for itself, a letter for a size that must be the
                same wherever the letter occurs.

        Raises:
            ValueError: naming the argument, what was expected and what was got.
        """
        if not isinstance(tensor, Tensor):
            raise ValueError(f"{name}: expected a tensor of shape {self._spell(shape)}, got {type(tensor).__name__}")
        if tensor.is_nested or tensor.layout != torch.strided:
            kind = "nested" if tensor.is_nested else tensor.layout
            raise ValueError(
                f"{name}: expected a dense tensor of shape {self._spell(shape)}, got a tensor that is {kind}"
            )
        axes = shape.split()
        fits = tensor.dim() == len(axes) and all(
            size == (int(axis) if axis.isdigit() else self._sizes.setdefault(axis, size))
            for axis, size in zip(axes, tensor.shape, strict=True)
        )
        if not fits:
            raise ValueError(f"{name}: expected shape {self._spell(shape)}, got {tuple(tensor.shape)}")
        if not tensor.is_floating_point():
            raise ValueError(f"{name}: expected a floating-point dtype, got {tensor.dtype}")
        self._check_like_first(name, tensor)

    def _check_like_first(self, name: str, tensor: Tensor) -> None:
        if self._first is None:
            self._first = (name, tensor)
            return
        first_name, first = self._first
        if tensor.dtype != first.dtype:
            raise ValueError(f"{name}: expected dtype {first.dtype} like {first_name}, got {tensor.dtype}")
        if tensor.device != first.device:
            raise ValueError(f"{name}: expected device {first.device} like {first_name}, got {tensor.device}")

    def _spell(self, shape: str) -> str:
        axes = shape.split()
        known = [f"{axis} = {self._sizes[axis]}" for axis in dict.fromkeys(axes) if axis in self._sizes]
        return f"({', '.join(axes)})" + (f" with {', '.join(known)}" if known else "")


def check_sizes(**sizes: int | None) -> None:
    """Raise ValueError unless all sizes, by the names of their arguments, are at least 1 or None."""
    for name, size in sizes.items():
        if size is not None and size < 1:
            raise ValueError(f"{name}: expected at least 1, got {size}")


def computation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in for inputs of ``dtype``: at least float32, whatever autocast says."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """A context in which autocast does not change the dtype that operations on ``device`` compute in."""
    # Leaving torch.autocast takes a lock, also where it changes nothing; a forked child may have inherited it locked.
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()
