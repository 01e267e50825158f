"""What the step-by-step states of the stacks share: how a batch is reordered and detached, and checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from ._arguments import computation_dtype
from ._transforms import is_transformed


class Rows:
    """What is kept of each row of a batch, as an immutable dataclass.

    Its fields are tensors with the batch as their first axis, objects with the methods below, tuples of these, or the
    same for all rows.
    """

    def reorder(self, index: Tensor) -> Self:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.
        """
        return type(self)(*[_chosen(x, index) for x in vars(self).values()])

    def detach(self) -> Self:
        """The same state, through which no gradients flow to the steps before, for truncated back-propagation."""
        return type(self)(*[_detached(x) for x in vars(self).values()])


class BatchState(Rows):
    """The same, whose first field is a tensor; ``reorder`` checks its argument."""

    def reorder(self, index: Tensor) -> Self:
        """As :meth:`Rows.reorder`.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor of row numbers on the state's device.
        """
        held = next(iter(vars(self).values()))
        check_index(index, held, len(held))
        return super().reorder(index)


def _chosen(field: Any, index: Tensor) -> Any:
    """These batch rows of a field; itself if all rows share it."""
    if isinstance(field, Tensor):
        return field.index_select(0, index)
    if hasattr(field, "reorder"):
        return field.reorder(index)
    return tuple(_chosen(x, index) for x in field) if isinstance(field, tuple) else field


def _detached(field: Any) -> Any:
    if hasattr(field, "detach"):
        return field.detach()
    return tuple(map(_detached, field)) if isinstance(field, tuple) else field


def step_through(
    step: Callable[..., tuple[Tensor, Any]], state: Any, *sequences: Tensor, nothing: Tensor
) -> tuple[Tensor, Any]:
    """Take n steps one by one.

    Args:
        step: maps the arguments of one step, and the state before it, to a result (B, ...) and the state after it.
        state: the state before the first step.
        sequences: the arguments of all steps, each (B, n, ...).
        nothing: the results of no steps, (B, 0, ...).

    Returns:
        The results (B, n, ...), and the state after the last step.
    """
    results = []
    for arguments in zip(*(x.unbind(1) for x in sequences), strict=True):
        result, state = step(*arguments, state)
        results.append(result)
    return torch.stack(results, dim=1) if results else nothing, state


def check_fits_state(name: str, tensor: Tensor, held: Tensor) -> None:
    """Check that a step's argument has the device, and the precision, that the state was made for.

    Args:
        name: the argument's name, for the message.
        tensor: a floating-point argument of ``step``.
        held: a tensor of the state, in the dtype that the state computes in.

    Raises:
        ValueError: naming the argument, what was expected and what was got.
    """
    if computation_dtype(tensor.dtype) != held.dtype:
        wide = held.dtype == torch.float64
        expected = "torch.float64" if wide else "torch.float32 or a narrower dtype"
        raise ValueError(f"{name}: expected dtype {expected} like the state, got {tensor.dtype}")
    if tensor.device != held.device:
        raise ValueError(f"{name}: expected device {held.device} like the state, got {tensor.device}")


def check_index(index: Tensor, held: Tensor, batch_size: int) -> None:
    """Check the argument of ``reorder``: which batch rows to keep, in which order.

    Args:
        index: the argument.
        held: a tensor of the state.
        batch_size: how many batch rows the state has.

    Raises:
        ValueError: if it is not a one-dimensional LongTensor on the state's device, or on the CPU has elements that are
            not row numbers. Other devices report such elements themselves, later.
    """
    if not isinstance(index, Tensor):
        raise ValueError(f"index: expected a one-dimensional LongTensor, got {type(index).__name__}")
    if index.dim() != 1 or index.dtype != torch.long:
        raise ValueError(
            f"index: expected a one-dimensional LongTensor, got shape {tuple(index.shape)} of {index.dtype}"
        )
    if index.device != held.device:
        raise ValueError(f"index: expected device {held.device} like the state, got {index.device}")
    readable = index.device.type == "cpu" and not is_transformed() and not torch.compiler.is_compiling()
    if readable and len(index):
        least, greatest = index.aminmax()
        if int(least) < 0 or int(greatest) >= batch_size:
            raise ValueError(f"index: expected row numbers from 0 to {batch_size - 1}, got {index.tolist()}")
