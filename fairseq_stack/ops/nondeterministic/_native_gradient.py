"""The functions of autograd behind the columns of the compiled kernels: a step, and a reordering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from ._native_columns import NativeColumns


class Step(torch.autograd.Function):
    """One step: columns, their history, log weights and value to the reading, the next column, its ``log_alpha``, and
    the next history.
    """

    @staticmethod
    def forward(
        ctx: Any, columns: NativeColumns, history: Tensor | None, logits: Tensor | None, value: Tensor
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        reading, column, log_alpha = columns.compute(logits, value)
        ctx.columns, ctx.column = columns, column
        ctx.likes = [None if x is None else (x.shape, x.dtype) for x in (logits, value)]
        ctx.mark_non_differentiable(column)
        ctx.set_materialize_grads(False)
        history = torch.zeros((), dtype=torch.float64).expand(columns.end())
        return reading.to(value.dtype), column, log_alpha, history

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        gradient: Tensor | None,
        _: None,
        gradient_of_log_alpha: Tensor | None,
        derivatives: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        columns = ctx.columns
        # They belong to this node alone: no other step has the same history.
        derivatives = (
            torch.zeros(columns.end(), dtype=torch.float64) if derivatives is None else derivatives.contiguous()
        )
        gradients = columns.differentiate(ctx.column, derivatives, gradient, gradient_of_log_alpha)
        given = [
            None if like is None else x.view(like[0]).to(like[1]) for x, like in zip(gradients, ctx.likes, strict=True)
        ]
        return None, derivatives[: columns.ends[-1]] if columns.ends else None, *given


class Reorder(torch.autograd.Function):
    """The history of columns in other batch rows."""

    @staticmethod
    def forward(ctx: Any, history: Tensor, index: Tensor, ends: tuple[int, ...], batch_size: int) -> Tensor:
        ctx.save_for_backward(index)
        ctx.ends, ctx.batch_size = ends, batch_size
        return history[:1].expand(ends_for_batch(ends, batch_size, len(index))[-1]) if batch_size else history

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivatives: Tensor) -> tuple[Tensor, None, None, None]:
        (index,) = ctx.saved_tensors
        if not ctx.batch_size:
            return derivatives, None, None, None
        gradient = derivatives.new_zeros(ctx.ends[-1])
        begin = new_begin = 0
        for end, new_end in zip(ctx.ends, ends_for_batch(ctx.ends, ctx.batch_size, len(index)), strict=True):
            own = gradient[begin:end].view(ctx.batch_size, -1)
            own.index_add_(0, index, derivatives[new_begin:new_end].view(len(index), own.shape[1]))
            begin, new_begin = end, new_end
        return gradient, None, None, None


def ends_for_batch(ends: tuple[int, ...], batch_size: int, new_size: int) -> tuple[int, ...]:
    """Where derivatives end, for another batch size."""
    return tuple(end // batch_size * new_size if batch_size else 0 for end in ends)
