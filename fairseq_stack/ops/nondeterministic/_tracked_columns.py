"""The columns of an incremental state as plain tensors of logarithms, on any device.

They are exact for all finite log weights, ``torch.func`` and ``torch.compile`` can transform them, and they can be
differentiated in every way and any number of times. But they are slow, and autograd takes O(t^2) memory for each step.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._states import Rows
from .._undefined import finite, marks_of
from ._log_weights import defined, first_configuration, log_sum_exp, relative_to_largest


class Column(NamedTuple):
    """Column t of gamma, from the first of its rows on that is remembered, and what else step t leaves."""

    gamma: Tensor  # log gamma, (B, rows, C, C)
    alpha: Tensor  # log alpha[t], (B, C)
    value: Tensor  # v_t, (B, m), with 0 for components that are not finite
    marks: Tensor  # (B, m), added to all readings from now on


@dataclass(frozen=True, eq=False)
class TrackedColumns(Rows):
    """What t steps leave, in logarithms, as if the largest log weight of each step were 0.

    A step copies it all, and so does ``reorder``. With a window of D steps, only the last rows and columns are kept,
    which the next step needs; their numbers count from the first of these.

    Attributes:
        num_states: Q.
        window: D, or None if the memory is unlimited.
        vectors: v_0..v_t, (B, t + 1, m), in float64, with 0 for values that are not finite.
        gamma: log gamma[i -> k][q,x -> r,y] at index [b, i + 1, k, qx, ry], (B, t + 1, t + 1, C, C).
        alpha: log alpha[i] at [b, i + 1], (B, t + 2, C).
        marks: (B, m), added to all further readings: NaN for the components in which a vector is not finite, and for
            all components if a log weight is NaN or inf; otherwise 0.
    """

    num_states: int
    window: int | None
    vectors: Tensor
    gamma: Tensor
    alpha: Tensor
    marks: Tensor

    @classmethod
    def initial(
        cls, bottom: Tensor, num_states: int, num_symbols: int, window: int | None, start: Tensor | None
    ) -> TrackedColumns:
        """Before the first step, with v_0 (B, m), and log weights (B, C) of the configurations that runs start in."""
        bottom = bottom.double()
        before = first_configuration((len(bottom), num_states * num_symbols), bottom)  # alpha[-1]
        weights, mark = before, bottom.new_zeros(len(bottom))
        if start is not None:
            ordinary, mark = defined(start.double()[:, None])
            weights = relative_to_largest(ordinary)[:, 0]
        gamma = pad(weights[:, None, None], (0, 0, 0, before.shape[1] - 1), value=-torch.inf)  # Eq. 21
        column = Column(gamma, weights, finite(bottom), marks_of(bottom) + mark[:, None])
        return cls._first(column, before, num_states, window)

    @classmethod
    def of(cls, columns: Sequence[Column], num_states: int, window: int | None) -> TrackedColumns:
        """These columns, which are all, or the last D."""
        rows = len(columns) if window is None else min(len(columns), max(window, 2) - 1)
        *before, first = columns[: len(columns) - rows + 1]
        alpha = before[-1].alpha if before else first_configuration(first.alpha.shape, first.alpha)
        tracked = cls._first(_last_rows(first, 1), alpha, num_states, window)
        for row, column in enumerate(columns[len(columns) - rows + 1 :], 2):
            tracked = tracked.append(_last_rows(column, row))
        return tracked

    @classmethod
    def _first(cls, column: Column, alpha: Tensor, num_states: int, window: int | None) -> TrackedColumns:
        """A column of one row, and the alpha before it."""
        return cls(
            num_states=num_states,
            window=window,
            vectors=column.value[:, None],
            gamma=column.gamma[:, :, None],
            alpha=torch.stack([alpha, column.alpha], 1),
            marks=column.marks,
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
        return self.alpha[:, -1]

    def advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        """(a)-(d) of ``docs/algorithm.md`` for one step, without exponents.

        Args:
            logits: log weights, (B, C, 2 C + Q).
            value: v_t, (B, m).

        Returns:
            The reading (B, C, m), and the next columns.
        """
        return self._without_surplus()._advance(logits.double(), value)

    def _advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        logits, mark = defined(logits)
        gamma = self._next_gamma(relative_to_largest(logits))
        numerators = log_sum_exp(self.alpha[..., None] + gamma, (2,))  # (c), (Eq. 27)
        alpha = log_sum_exp(numerators, (1,))
        total = log_sum_exp(alpha, (1,)).clamp_min(torch.finfo(alpha.dtype).min)
        marks = self.marks + marks_of(value) + mark[:, None]
        columns = self.append(Column(gamma, alpha, finite(value.double()), marks))
        weights = torch.exp(numerators - total[:, None, None])  # (d)
        readings = torch.bmm(weights.transpose(1, 2), columns.vectors)
        return (readings + marks[:, None]).to(value.dtype), columns

    def _next_gamma(self, logits: Tensor) -> Tensor:
        """(a) and (b) (Eq. 24 and Eq. 25): column t, (B, t + 1, C, C), from log weights (B, C, 2 C + Q)."""
        last, size = self.gamma[:, :, -1], logits.shape[1]
        states = self.num_states, size // self.num_states
        # At index [b, i + 1, qx, w, ry or r].
        moved = log_sum_exp(last[..., None] + logits[:, None, None, :, size:], (3,))
        popped = moved[:, 1:, :, size:].unflatten(2, states)
        column = moved[..., :size]
        if popped.shape[1] > 0:
            # At index [b, i + 1, k, qx, u, y, r].
            terms = self.gamma[:, :, :-1].unflatten(4, states)[..., None] + popped[:, None, :, None]
            pops = log_sum_exp(terms, (2, 4)).transpose(3, 4).flatten(3)
            column = log_sum_exp(torch.stack([column, pops]), (0,))
        if self.window == 1:  # a step needs a column before it, but nothing of it is remembered
            column = torch.full_like(column, -torch.inf)
        return torch.cat([column, logits[:, None, :, :size]], 1)

    def append(self, column: Column) -> TrackedColumns:
        """With column t."""
        before = pad(self.gamma, (0, 0, 0, 0, 0, 0, 0, 1), value=-torch.inf)
        return dataclasses.replace(
            self,
            vectors=torch.cat([self.vectors, column.value[:, None]], 1),
            gamma=torch.cat([before, column.gamma[:, :, None]], 2),
            alpha=torch.cat([self.alpha, column.alpha[:, None]], 1),
            marks=column.marks,
        )

    def tracked(self) -> TrackedColumns:
        """Themselves."""
        return self

    def _without_surplus(self) -> TrackedColumns:
        """Without the rows and columns that the next step does not need."""
        surplus = 0 if self.window is None else self.gamma.shape[1] - max(self.window, 2) + 1
        if surplus <= 0:
            return self
        return dataclasses.replace(
            self,
            vectors=self.vectors[:, surplus:],
            gamma=self.gamma[:, surplus:, surplus:],
            alpha=self.alpha[:, surplus:],
        )


def logarithms(mantissas: Tensor, exponents: Tensor) -> Tensor:
    """log of mantissas (B, ...) times 2 to the power of exponents (B, ..., fewer axes)."""
    impossible = mantissas == 0
    exponents = exponents.reshape(exponents.shape + (1,) * (mantissas.dim() - exponents.dim()))
    return torch.where(impossible, -torch.inf, torch.where(impossible, 1, mantissas).log() + exponents * math.log(2))


def _last_rows(column: Column, rows: int) -> Column:
    return column._replace(gamma=column.gamma[:, -rows:])
