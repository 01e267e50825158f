"""Memory for neighbouring columns of an incremental state, which states with a common past share.

A panel is allocated once, with room for columns that are yet to come: a step writes its column there, and copies no
other. A state knows how many columns it has. The room behind them belongs to the first state that descends from it; any
other gets a copy of the last panel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple, Self

import torch
from torch import Tensor

from ._columns import DEAD, Blocks

FEWEST = 16  # columns of a panel


class Adjoint(NamedTuple):
    """Derivatives of what a panel holds."""

    blocks: Tensor
    alpha: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Panel:
    """The columns k = begin..begin+K-1, or as many of them as have been written.

    Attributes:
        begin: the number of the first column.
        first_row: the number i + 1 of the first row that any step after column ``begin`` needs.
        blocks: gamma, (B, S, K, Q, rows, C).
        exponents: (B, rows, K).
        alpha: (B, K, C).
        alpha_exponents: (B, K).
        values: v_k, (B, K, m).
        logits: the log weights of step k, (B, K, C, 2 C + Q); those of the start are at [:, 0, :, 0].
    """

    begin: int
    first_row: int
    blocks: Tensor
    exponents: Tensor
    alpha: Tensor
    alpha_exponents: Tensor
    values: Tensor
    logits: Tensor
    _claims: dict[int, object] = field(default_factory=dict)

    @classmethod
    def empty(cls, begin: int, num_states: int, num_symbols: int, window: int | None, value: Tensor) -> Self:
        """Room for columns; there is one more panel whenever their number has grown by half.

        Args:
            begin: the number of the first.
            num_states: Q.
            num_symbols: S.
            window: D, or None.
            value: v_k for some k, (B, m), in float64.
        """
        batch_size, size = len(value), num_states * num_symbols
        columns = max(FEWEST, (begin if window is None else min(begin, window)) // 2)
        first_row = 0 if window is None else max(begin - window + 1, 0)
        rows = begin + columns - first_row
        with torch.inference_mode(False):  # or else no step outside inference mode could write to it
            return cls(
                begin,
                first_row,
                blocks=value.new_zeros(batch_size, num_symbols, columns, num_states, rows, size),
                exponents=value.new_full((batch_size, rows, columns), DEAD),
                alpha=value.new_zeros(batch_size, columns, size),
                alpha_exponents=value.new_zeros(batch_size, columns),
                values=value.new_zeros(batch_size, columns, value.shape[1]),
                logits=value.new_zeros(batch_size, columns, size, 2 * size + num_states),
            )

    @property
    def end(self) -> int:
        """The number of the last column, and 1."""
        return self.begin + self.alpha.shape[1]

    def claim(self, column: int) -> bool:
        """Whether the caller, a step, is the first to ask for this column, and may write it."""
        claim = object()
        return self._claims.setdefault(column, claim) is claim  # in one operation, for threads

    def select(self, index: Tensor) -> Self:
        """A copy of these batch rows."""
        with torch.inference_mode(False):
            tensors = {x.name: getattr(self, x.name).index_select(0, index) for x in fields(self)[2:-1]}
        return type(self)(self.begin, self.first_row, **tensors)

    def within(self, start: int, stop: int) -> slice:
        """Which of the columns start..stop-1 are here."""
        return slice(max(start - self.begin, 0), max(min(stop, self.end) - self.begin, 0))

    def rows(self, start: int, stop: int) -> slice:
        """Where the rows start..stop-1 are, of the columns before ``stop`` that are here."""
        return slice(start - self.first_row, min(stop, self.end) - self.first_row)

    def one(self, blocks: Tensor, column: int, first: int) -> Tensor:
        """A column of ``blocks``, or of their derivatives, from row ``first`` on, (B, S, Q, rows, C)."""
        return blocks[:, :, column - self.begin, :, self.rows(first, column + 1)]

    def several(self, blocks: Tensor, first: int, stop: int) -> Tensor:
        """Those of the columns first..stop-1 that are here, from row ``first`` on, (B, S, K, Q, rows, C)."""
        return blocks[:, :, self.within(first, stop), :, self.rows(first, stop)]

    def neighbours(self, first: int, stop: int) -> Blocks:
        """The same of ``blocks``, with their exponents."""
        exponents = self.exponents[:, self.rows(first, stop), self.within(first, stop)]
        return Blocks(self.several(self.blocks, first, stop), exponents)

    def add(self, derivatives: Tensor, to: Tensor, start: int) -> None:
        """Add derivatives (B, columns, ...) of the columns from ``start`` on to those of the columns here."""
        here = derivatives[:, max(self.begin - start, 0) : max(self.end - start, 0)]
        to[:, self.within(start, start + derivatives.shape[1])] += here

    @property
    def adjoint_size(self) -> int:
        """How many numbers the derivatives are."""
        return self.blocks.numel() + self.alpha.numel() + self.values.numel()

    def adjoint(self, derivatives: Tensor) -> Adjoint:
        """The derivatives, (``adjoint_size``,), which have the batch as their first axis."""
        batch_size = len(self.alpha)
        shapes = [x.shape[1:] for x in (self.blocks, self.alpha, self.values)]
        sizes = [shape.numel() for shape in shapes]
        pieces = derivatives.view(batch_size, sum(sizes)).split(sizes, 1)
        return Adjoint(*(x.unflatten(1, shape) for x, shape in zip(pieces, shapes, strict=True)))
