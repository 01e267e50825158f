"""The columns of an incremental state as plain tensors, for ``torch.func`` and ``torch.compile``, on any device.

They can be differentiated in every way and any number of times, but autograd takes O(t^2) memory for each step.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite, marks_of
from ._columns import DEAD, Blocks, Past, as_block, first_alpha, log_forward_weights, step


class Column(NamedTuple):
    """Column t of gamma, from the first of its rows on that is remembered, and what else step t leaves."""

    gamma: Tensor  # (B, rows, C, C)
    exponents: Tensor  # (B, rows)
    alpha: Tensor  # alpha[t], (B, C)
    alpha_exponent: Tensor  # (B,)
    value: Tensor  # v_t, (B, m), with 0 for components that are not finite
    marks: Tensor  # (B, m), added to all readings from now on


@dataclass(frozen=True, eq=False)
class TrackedColumns:
    """What t steps leave, laid out as ``_columns.py`` says: mantissas in float64 with an exponent for each block.

    A step copies it all, and so does ``reorder``. With a window of D steps, only the last rows and columns are kept,
    which the next step needs; their numbers, here and in ``_columns.py``, count from the first of these.

    Attributes:
        num_states: Q.
        window: D, or None if the memory is unlimited.
        vectors: v_0..v_t, (B, t + 1, m), in float64, with 0 for values that are not finite.
        last: column t of gamma, (B, t + 1, C, C).
        blocks: the columns before it, (B, S, t, Q, t, C).
        exponents: of gamma[i -> k] at [b, i + 1, k], (B, t + 1, t + 1).
        alpha: alpha[i] at [b, i + 1], (B, t + 2, C).
        alpha_exponents: its exponents, (B, t + 2).
        marks: (B, m), added to all further readings: NaN for the components in which a vector is not finite, and for
            all components if a log weight is NaN or inf; otherwise 0.
    """

    num_states: int
    window: int | None
    vectors: Tensor
    last: Tensor
    blocks: Tensor
    exponents: Tensor
    alpha: Tensor
    alpha_exponents: Tensor
    marks: Tensor

    @classmethod
    def initial(
        cls, bottom: Tensor, num_states: int, num_symbols: int, window: int | None, start: Tensor | None
    ) -> TrackedColumns:
        """Before the first step, with v_0 (B, m), and log weights (B, C) of the configurations that runs start in."""
        bottom = bottom.double()
        size = num_states * num_symbols
        before = torch.eye(1, size, dtype=bottom.dtype, device=bottom.device).expand(
            len(bottom), -1
        )  # alpha[-1], Eq. 23
        weights, mark = before, bottom.new_zeros(len(bottom))
        if start is not None:
            weights, mark = first_alpha(start.double())
        gamma = pad(weights[:, None, None], (0, 0, 0, size - 1))  # Eq. 21
        zeros = bottom.new_zeros(len(bottom))
        own = Column(gamma, zeros[:, None], weights, zeros, finite(bottom), marks_of(bottom) + mark[:, None])
        return cls._first(own, before, zeros, num_states, window)

    @classmethod
    def of(cls, columns: Sequence[Column], num_states: int, window: int | None) -> TrackedColumns:
        """These columns, which are all, or the last D."""
        rows = len(columns) if window is None else min(len(columns), max(window, 2) - 1)
        *before, first = columns[: len(columns) - rows + 1]
        if before:
            alpha, exponent = before[-1].alpha, before[-1].alpha_exponent
        else:
            alpha, exponent = torch.zeros_like(first.alpha), torch.zeros_like(first.alpha_exponent)
            alpha[:, 0] = 1
        tracked = cls._first(_last_rows(first, 1), alpha, exponent, num_states, window)
        for row, column in enumerate(columns[len(columns) - rows + 1 :], 2):
            tracked = tracked.append(_last_rows(column, row))
        return tracked

    @classmethod
    def _first(
        cls, own: Column, alpha: Tensor, alpha_exponent: Tensor, num_states: int, window: int | None
    ) -> TrackedColumns:
        """A column of one row, and the alpha before it."""
        num_symbols = own.alpha.shape[1] // num_states
        return cls(
            num_states=num_states,
            window=window,
            vectors=own.value[:, None],
            last=own.gamma,
            blocks=own.value.new_zeros(len(own.value), num_symbols, 0, num_states, 0, own.alpha.shape[1]),
            exponents=own.exponents[:, :, None],
            alpha=torch.stack([alpha, own.alpha], 1),
            alpha_exponents=torch.stack([alpha_exponent, own.alpha_exponent], 1),
            marks=own.marks,
        )

    @property
    def batch_size(self) -> int:
        """B."""
        return self.vectors.shape[0]

    @property
    def value_size(self) -> int:
        """m."""
        return self.vectors.shape[2]

    @property
    def log_alpha(self) -> Tensor:
        """log alpha[t], (B, C) (Eq. 27), if the largest log weight of each step were 0."""
        return log_forward_weights(self.alpha[:, -1], self.alpha_exponents[:, -1])

    def advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        """(a)-(d) of ``docs/algorithm.md`` for one step.

        Args:
            logits: log weights, (B, C, 2 C + Q).
            value: v_t, (B, m).

        Returns:
            The reading (B, C, m), and the next columns.
        """
        return self._without_surplus()._advance(logits.double(), value)

    def _advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        before = [Blocks(self.blocks, self.exponents[:, :-1, :-1])] if self.blocks.shape[2] else []
        past = Past(self.last, self.exponents[:, :, -1], before, self.alpha, self.alpha_exponents)
        _, own, top, mark = step(past, logits, self.window)
        marks = self.marks + marks_of(value) + mark[:, None]
        column = Column(own.gamma, own.exponents, top.alpha, top.alpha_exponent, finite(value.double()), marks)
        columns = self.append(column)
        readings = torch.bmm(top.weights.transpose(1, 2), columns.vectors)
        return (readings + marks[:, None]).to(value.dtype), columns

    def append(self, column: Column) -> TrackedColumns:
        """With column t."""
        return dataclasses.replace(
            self,
            vectors=torch.cat([self.vectors, column.value[:, None]], 1),
            last=column.gamma,
            blocks=self._blocks_with_last(),
            exponents=_append_column(self.exponents, column.exponents),
            alpha=torch.cat([self.alpha, column.alpha[:, None]], 1),
            alpha_exponents=torch.cat([self.alpha_exponents, column.alpha_exponent[:, None]], 1),
            marks=column.marks,
        )

    def reorder(self, index: Tensor) -> TrackedColumns:
        """The columns of these batch rows, (B',)."""
        return dataclasses.replace(self, **{name: x[index] for name, x in self._tensors().items()})

    def detach(self) -> TrackedColumns:
        """The same columns as constants."""
        return dataclasses.replace(self, **{name: x.detach() for name, x in self._tensors().items()})

    def tracked(self) -> TrackedColumns:
        """Themselves."""
        return self

    def _tensors(self) -> dict[str, Any]:
        return {name: x for name, x in vars(self).items() if isinstance(x, Tensor)}

    def _without_surplus(self) -> TrackedColumns:
        """Without the rows and columns that the next step does not need."""
        surplus = 0 if self.window is None else self.last.shape[1] - max(self.window, 2) + 1
        if surplus <= 0:
            return self
        return dataclasses.replace(
            self,
            vectors=self.vectors[:, surplus:],
            last=self.last[:, surplus:],
            blocks=self.blocks[:, :, surplus:, :, surplus:],
            exponents=self.exponents[:, surplus:, surplus:],
            alpha=self.alpha[:, surplus:],
            alpha_exponents=self.alpha_exponents[:, surplus:],
        )

    def _blocks_with_last(self) -> Tensor:
        """The columns 0..t as blocks, (B, S, t + 1, Q, t + 1, C)."""
        newest = as_block(self.last, self.num_states)
        return torch.cat([pad(self.blocks, (0, 0, 0, 1)), newest[:, :, None]], 2)


def _last_rows(column: Column, rows: int) -> Column:
    return column._replace(gamma=column.gamma[:, -rows:], exponents=column.exponents[:, -rows:])


def _append_column(exponents: Tensor, column: Tensor) -> Tensor:
    """Exponents (B, t, t) with a new column (B, t + 1), and nothing below the old ones."""
    return torch.cat([pad(exponents, (0, 0, 0, 1), value=DEAD), column[:, :, None]], 2)
