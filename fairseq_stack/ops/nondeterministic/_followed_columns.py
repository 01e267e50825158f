"""How autograd follows the columns of an incremental state, each step as one function.

A column is never changed once it is computed, so states with a common past share its columns. Their *history* is a
tensor without memory of its own, in the shape of the derivatives of all columns so far, and the gradient of the history
is these derivatives. The backward pass of a step gets what all later steps have added up in them, and adds what the
step owes to the columns before it. As a result, autograd keeps no O(t^2) tensor for a step, nothing is copied, and a
state can be continued in several ways.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._columns import LARGEST
from ._tracked_columns import TrackedColumns, logarithms


class Origin(NamedTuple):
    """How columns that autograd follows were made: by a step, or by a choice of batch rows.

    Attributes:
        before: the columns before it.
        step: the log weights and the value of the step, as ``advance`` takes them.
        rows: the batch rows.
    """

    before: FollowedColumns
    step: tuple[Tensor | None, Tensor] | None = None
    rows: Tensor | None = None

    def repeat(self, columns: TrackedColumns | None) -> TrackedColumns:
        """Make the same of columns in logarithms; of None, the first column."""
        if self.step is None:
            assert columns is not None and self.rows is not None
            return columns.reorder(self.rows)
        logits, value = self.step
        if columns is None:
            return self.before.first_tracked(logits, value)
        assert logits is not None
        return columns.advance(logits, value)[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class FollowedColumns(ABC):
    """What t steps leave, in tensors that have no gradient of their own.

    Attributes:
        num_states: Q.
        num_symbols: S.
        window: D, or None if the memory is unlimited.
        is_exact: whether float64 was precise enough for the last step.
        history: the history of the columns that autograd follows, which are the last ones, or None.
        ends: where the derivatives of each column, or of some neighbouring columns, end in the gradient of the history.
        origin: how the columns were made, if they have a history.
        weighs: whether ``log_alpha`` is wanted.
        log_alpha: as :attr:`TrackedColumns.log_alpha`, or None.
    """

    num_states: int
    num_symbols: int
    window: int | None
    is_exact: bool = True
    history: Tensor | None = None
    ends: tuple[int, ...] = ()
    origin: Origin | None = None
    weighs: bool = False
    log_alpha: Tensor | None = None

    @classmethod
    @abstractmethod
    def empty(cls, bottom: Tensor, num_states: int, num_symbols: int, window: int | None, weighs: bool) -> Self:
        """No columns, for v_0 (B, m)."""

    @classmethod
    def initial(
        cls,
        bottom: Tensor,
        num_states: int,
        num_symbols: int,
        window: int | None,
        start: Tensor | None,
        weighs: bool = False,
    ) -> Self | TrackedColumns:
        """Before the first step, with v_0 (B, m), and log weights (B, C) of the configurations that runs start in."""
        return cls.empty(bottom, num_states, num_symbols, window, weighs).advance(start, bottom)[1]

    @property
    @abstractmethod
    def batch_size(self) -> int:
        """B."""

    @property
    @abstractmethod
    def has_begun(self) -> bool:
        """Whether there is a column."""

    @abstractmethod
    def compute(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, Self]:
        """The reading of the next step in float64, (B, C, m), and the next columns, with the same history."""

    @abstractmethod
    def ends_of(self, after: Self) -> tuple[int, ...]:
        """The ``ends`` of the next columns, if autograd follows them."""

    @abstractmethod
    def differentiate(self, after: Self, derivatives: Tensor, gradient: Tensor | None) -> tuple[Tensor, Tensor]:
        """The backward pass of the next step.

        Args:
            after: the next columns, as ``compute`` returned them.
            derivatives: of these columns and of the next one; what the step owes to them is added.
            gradient: of the reading.

        Returns:
            The gradients of the log weights, (B, C (2 C + Q)), or (B, C) of the start, and of the value, (B, m).
        """

    @abstractmethod
    def newest_alpha(self) -> tuple[Tensor, Tensor]:
        """Of columns that ``compute`` returned, the mantissas of alpha[t], (B, C), and its exponents, (B,)."""

    @abstractmethod
    def derivative_of_alpha(self, after: Self, derivatives: Tensor) -> Tensor:
        """The part of the derivatives that ``differentiate`` takes that is of alpha of the next column, (B, C)."""

    @abstractmethod
    def select(self, index: Tensor) -> Self:
        """These batch rows, (B',), of the same columns, with the same ``log_alpha`` and history."""

    @abstractmethod
    def as_tracked(self) -> TrackedColumns:
        """The same as constant tensors."""

    def first_tracked(self, start: Tensor | None, bottom: Tensor) -> TrackedColumns:
        """The first column, as ``TrackedColumns.initial`` makes it."""
        return TrackedColumns.initial(bottom, self.num_states, self.num_symbols, self.window, start)

    def tracked(self) -> TrackedColumns:
        """The same as tensors, which ``torch.func`` can transform.

        Raises:
            RuntimeError: if autograd follows some columns.
        """
        if self.history is not None:
            raise RuntimeError(
                "nondeterministic_stack: inside torch.func, expected a state whose past requires no gradients; "
                "detach it"
            )
        if torch.compiler.is_compiling():  # views of bytes as numbers are wrong in its graphs
            return torch.compiler.disable(self.as_tracked)()
        return self.as_tracked()

    def in_logarithms(self) -> TrackedColumns:
        """The same as tensors that autograd follows step by step, if it follows these columns."""
        origins: list[Origin] = []
        columns: FollowedColumns = self
        while columns.origin is not None:
            origins.append(columns.origin)
            columns = columns.origin.before
        tracked = columns.as_tracked() if columns.has_begun else None
        for origin in reversed(origins):
            tracked = origin.repeat(tracked)
        assert tracked is not None
        return tracked

    def advance(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, Self | TrackedColumns]:
        """(a)-(d) of ``docs/algorithm.md`` for one step.

        Args:
            logits: log weights, (B, C, 2 C + Q); before the first column those of the start, (B, C), or None.
            value: v_t, (B, m).

        Returns:
            The reading (B, C, m), and the next columns, in logarithms if float64 is not precise enough.
        """
        reading, after = self.advance_in_float64(logits, value)
        if after.is_exact:
            return reading, after
        if not self.has_begun:
            return reading, self.first_tracked(logits, value)
        assert logits is not None
        return self.in_logarithms().advance(logits, value)

    def advance_in_float64(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, Self]:
        """The same, whether or not float64 is precise enough."""
        follows = self.history is not None or value.requires_grad or (logits is not None and logits.requires_grad)
        if not (follows and torch.is_grad_enabled()):
            columns = self if self.history is None else self.detach()
            reading, after = columns.compute(logits, value)
            if self.weighs:
                after = dataclasses.replace(after, log_alpha=logarithms(*after.newest_alpha()))
            return reading.to(value.dtype), after
        reading, after, log_alpha, history = _Step.apply(self, self.history, logits, value)
        origin = Origin(self, step=(logits, value))
        return reading, dataclasses.replace(
            after, history=history, ends=self.ends_of(after), origin=origin, log_alpha=log_alpha
        )

    def reorder(self, index: Tensor) -> Self:
        """The columns of these batch rows, (B',)."""
        log_alpha = None if self.log_alpha is None else self.log_alpha[index]
        if self.history is None or not torch.is_grad_enabled():
            columns = self if self.history is None else self.detach()
            return dataclasses.replace(columns.select(index), log_alpha=log_alpha)
        return dataclasses.replace(
            self.select(index),
            log_alpha=log_alpha,
            history=_Reorder.apply(self.history, index, self.ends, self.batch_size),
            ends=_for_batch(self.ends, self.batch_size, len(index)),
            origin=Origin(self, rows=index),
        )

    def detach(self) -> Self:
        """The same columns as constants."""
        log_alpha = None if self.log_alpha is None else self.log_alpha.detach()
        return dataclasses.replace(self, history=None, ends=(), origin=None, log_alpha=log_alpha)


class _Step(torch.autograd.Function):
    """One step: columns, their history, log weights and value to the reading, the next columns, their ``log_alpha`` and
    their history.
    """

    @staticmethod
    def forward(
        ctx: Any, columns: FollowedColumns, history: Tensor | None, logits: Tensor | None, value: Tensor
    ) -> tuple[Tensor, FollowedColumns, Tensor | None, Tensor]:
        reading, after = columns.compute(logits, value)
        log_alpha = logarithms(*after.newest_alpha()) if columns.weighs else None
        ctx.columns, ctx.after = columns, after
        ctx.likes = [None if x is None else (x.shape, x.dtype) for x in (logits, value)]
        ctx.size, ctx.device = columns.ends_of(after)[-1], value.device
        ctx.set_materialize_grads(False)
        history = torch.zeros((), dtype=torch.float64, device=ctx.device).expand(ctx.size)
        return reading.to(value.dtype), after, log_alpha, history

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, gradient: Tensor | None, _: None, of_log_alpha: Tensor | None, derivatives: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        columns = ctx.columns
        if derivatives is None:
            derivatives = torch.zeros(ctx.size, dtype=torch.float64, device=ctx.device)
        derivatives = derivatives.contiguous()  # They belong to this node alone: no other step has the same history.
        if of_log_alpha is not None:
            alpha, _ = ctx.after.newest_alpha()
            of_alpha = (of_log_alpha / alpha).clamp(-LARGEST, LARGEST)
            columns.derivative_of_alpha(ctx.after, derivatives).add_(torch.where(alpha > 0, of_alpha, 0))
        gradients = columns.differentiate(ctx.after, derivatives, gradient)
        of_inputs = [
            None if like is None else x.view(like[0]).to(like[1]) for x, like in zip(gradients, ctx.likes, strict=True)
        ]
        return None, derivatives[: columns.ends[-1]] if columns.ends else None, *of_inputs


class _Reorder(torch.autograd.Function):
    """The history of columns in other batch rows."""

    @staticmethod
    def forward(ctx: Any, history: Tensor, index: Tensor, ends: tuple[int, ...], batch_size: int) -> Tensor:
        ctx.save_for_backward(index)
        ctx.ends, ctx.batch_size = ends, batch_size
        return history[:1].expand(_for_batch(ends, batch_size, len(index))[-1]) if batch_size else history

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivatives: Tensor) -> tuple[Tensor, None, None, None]:
        (index,) = ctx.saved_tensors
        if not ctx.batch_size:
            return derivatives, None, None, None
        gradient = derivatives.new_zeros(ctx.ends[-1])
        begin = new_begin = 0
        for end, new_end in zip(ctx.ends, _for_batch(ctx.ends, ctx.batch_size, len(index)), strict=True):
            rows = gradient[begin:end].view(ctx.batch_size, -1)
            rows.index_add_(0, index, derivatives[new_begin:new_end].view(len(index), rows.shape[1]))
            begin, new_begin = end, new_end
        return gradient, None, None, None


def _for_batch(ends: tuple[int, ...], batch_size: int, new_size: int) -> tuple[int, ...]:
    """Where derivatives end, for another batch size."""
    return tuple(end // batch_size * new_size if batch_size else 0 for end in ends)
