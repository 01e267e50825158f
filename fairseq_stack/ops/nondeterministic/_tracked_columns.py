"""The columns of an incremental state as tensors that autograd follows, on any device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite, marks_of
from ._columns import (
    DEAD,
    as_blocks,
    defined,
    lift,
    next_column,
    read_top,
    relative_to_largest,
)


@dataclass(frozen=True, eq=False)
class TrackedColumns:
    """What t steps leave, laid out as ``_columns.py`` says: mantissas in float64 with an exponent for each block.

    A step copies it all, and so does ``reorder``.

    Attributes:
        num_states: Q.
        vectors: v_0..v_t, (B, t + 1, m), in float64, with 0 for values that are not finite.
        last: column t of gamma, (B, t + 1, C, C).
        blocks: the columns before it, (B * S, t * Q, t * C).
        exponents: of gamma[i -> k] at [b, i + 1, k], (B, t + 1, t + 1).
        alpha: alpha[i] at [b, i + 1], (B, t + 2, C).
        alpha_exponents: its exponents, (B, t + 2).
        marks: (B, m), added to all further readings: NaN for the components in which a vector is not finite, and for
            all components if a log weight is NaN or inf; otherwise 0.
    """

    num_states: int
    vectors: Tensor
    last: Tensor
    blocks: Tensor
    exponents: Tensor
    alpha: Tensor
    alpha_exponents: Tensor
    marks: Tensor

    @classmethod
    def initial(cls, bottom: Tensor, num_states: int, num_symbols: int) -> TrackedColumns:
        """Before the first step, with v_0 (B, m)."""
        bottom = bottom.double()
        batch_size, size = len(bottom), num_states * num_symbols
        last = bottom.new_zeros(batch_size, 1, size, size)
        last[:, :, 0, 0] = 1  # Eq. 21
        alpha = bottom.new_zeros(batch_size, 2, size)
        alpha[:, :, 0] = 1  # Eq. 23
        return cls(
            num_states=num_states,
            vectors=finite(bottom)[:, None],
            last=last,
            blocks=bottom.new_zeros(batch_size * num_symbols, 0, 0),
            exponents=bottom.new_zeros(batch_size, 1, 1),
            alpha=alpha,
            alpha_exponents=bottom.new_zeros(batch_size, 2),
            marks=marks_of(bottom),
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
    def steps(self) -> int:
        """t."""
        return self.vectors.shape[1] - 1

    @property
    def requires_grad(self) -> bool:
        return any(x.requires_grad for x in (self.vectors, self.last, self.blocks, self.alpha))

    def advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        """(a)-(d) of ``docs/algorithm.md`` for one step.

        Args:
            logits: log weights, (B, C, 2 C + Q).
            value: v_t, (B, m).

        Returns:
            The reading (B, C, m), and the next columns.
        """
        logits, mark = defined(logits.double())
        gamma, exponents = next_column(
            self.last,
            self.blocks,
            self.exponents,
            torch.exp(lift(relative_to_largest(logits))),
            occurs=self.alpha[:, -1] > 0,
        )
        top = read_top(gamma, self.alpha, exponents + self.alpha_exponents)
        columns = self.append(gamma, exponents, top.alpha, top.alpha_exponent, value, mark)
        readings = torch.bmm(top.weights.transpose(1, 2), columns.vectors)
        return readings + columns.marks[:, None], columns

    def append(
        self,
        gamma: Tensor,
        exponents: Tensor,
        alpha: Tensor,
        alpha_exponents: Tensor,
        value: Tensor,
        mark: Tensor,
    ) -> TrackedColumns:
        """With column t of gamma (B, t + 1, C, C), alpha[t] (B, C), their exponents (B, t + 1) and (B,); v_t; and the
        mark of the log weights, (B,).
        """
        return TrackedColumns(
            num_states=self.num_states,
            vectors=torch.cat([self.vectors, finite(value[:, None].double())], 1),
            last=gamma,
            blocks=self._blocks_with_last(),
            exponents=_append_column(self.exponents, exponents),
            alpha=torch.cat([self.alpha, alpha[:, None]], 1),
            alpha_exponents=torch.cat([self.alpha_exponents, alpha_exponents[:, None]], 1),
            marks=self.marks + marks_of(value) + mark[:, None],
        )

    def reorder(self, index: Tensor) -> TrackedColumns:
        """The columns of these batch rows, (B',)."""
        num_symbols = self.last.shape[2] // self.num_states
        blocks = self.blocks.unflatten(0, (self.batch_size, num_symbols))
        return TrackedColumns(
            num_states=self.num_states,
            vectors=self.vectors[index],
            last=self.last[index],
            blocks=blocks[index].flatten(0, 1),
            exponents=self.exponents[index],
            alpha=self.alpha[index],
            alpha_exponents=self.alpha_exponents[index],
            marks=self.marks[index],
        )

    def tracked(self) -> TrackedColumns:
        """Themselves."""
        return self

    def _blocks_with_last(self) -> Tensor:
        """The columns 0..t as blocks, (B * S, (t + 1) Q, (t + 1) C)."""
        newest = as_blocks(self.last, self.num_states).flatten(0, 1)
        return torch.cat([pad(self.blocks, (0, self.last.shape[2])), newest], 1)


def _append_column(exponents: Tensor, column: Tensor) -> Tensor:
    """Exponents (B, t, t) with a new column (B, t + 1), and nothing below the old ones."""
    return torch.cat([pad(exponents, (0, 0, 0, 1), value=DEAD), column[:, :, None]], 2)
