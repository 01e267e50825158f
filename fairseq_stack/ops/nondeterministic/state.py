"""The nondeterministic stack one step at a time, as decoders and stack RNNs need it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype
from .._states import check_fits_state, check_index
from ._columns import (
    DEAD,
    as_blocks,
    join_transitions,
    lift,
    next_column_with_exponents,
    read_top_with_exponents,
    relative_to_largest,
)


@dataclass(frozen=True, eq=False)
class NondeterministicStackState:
    """The stack after t steps, for a batch of B sequences; immutable.

    A step takes O(Q^3 S^2 t^2) time and a state O(Q^2 S^2 t^2) space for each sequence. Autograd
    differentiates through the steps. Make the first state with ``initial``. The fields are laid out as
    ``_columns.py`` says: inner weights are mantissas in float64 with an exponent for each block.

    Attributes:
        num_states: Q.
        vectors: v_0..v_t, (B, t + 1, m), in the dtype that the vectors are kept in (at least float32).
        last: column t of gamma, (B, t + 1, C, C).
        blocks: the columns before it, (B * S, t * Q, t * C).
        exponents: of gamma[i -> k] at [b, i + 1, k], (B, t + 1, t + 1).
        alpha: alpha[i] at [b, i + 1], (B, t + 2, C).
        alpha_exponents: its exponents, (B, t + 2).
    """

    num_states: int
    vectors: Tensor
    last: Tensor
    blocks: Tensor
    exponents: Tensor
    alpha: Tensor
    alpha_exponents: Tensor

    @classmethod
    def initial(
        cls, bottom: Tensor, *, batch_size: int, num_states: int, num_symbols: int
    ) -> NondeterministicStackState:
        """The stack before the first step: start state 0, and the bottom symbol 0 with the vector v_0.

        Args:
            bottom: v_0, (m,) or (B, m); sets the dtype and the device of the state.
            batch_size: B.
            num_states: Q.
            num_symbols: S.

        Raises:
            ValueError: if a size or the shape or dtype of ``bottom`` is wrong.
        """
        for name, size, least in (
            ("batch_size", batch_size, 0),
            ("num_states", num_states, 1),
            ("num_symbols", num_symbols, 1),
        ):
            if size < least:
                raise ValueError(f"{name}: expected at least {least}, got {size}")
        shared = isinstance(bottom, Tensor) and bottom.dim() == 1
        Sizes().check("bottom", bottom, "m" if shared else f"{batch_size} m")
        vectors = bottom.to(computation_dtype(bottom.dtype)).expand(batch_size, -1)[:, None]
        size = num_states * num_symbols
        like = bottom.detach().double()
        last = like.new_zeros(batch_size, 1, size, size)
        last[:, :, 0, 0] = 1  # Eq. 21
        alpha = like.new_zeros(batch_size, 2, size)
        alpha[:, :, 0] = 1  # Eq. 23
        return cls(
            num_states=num_states,
            vectors=vectors,
            last=last,
            blocks=like.new_zeros(batch_size * num_symbols, 0, 0),
            exponents=like.new_zeros(batch_size, 1, 1),
            alpha=alpha,
            alpha_exponents=like.new_zeros(batch_size, 2),
        )

    def step(
        self, push: Tensor, replace: Tensor, pop: Tensor, value: Tensor
    ) -> tuple[Tensor, NondeterministicStackState]:
        """Take one step; this state stays as it is.

        Args:
            push: log Delta_t[q, x -> r, xy] at index [b, q, x, r, y], (B, Q, S, Q, S).
            replace: log Delta_t[q, x -> r, y], (B, Q, S, Q, S).
            pop: log Delta_t[q, x -> r, eps], (B, Q, S, Q).
            value: v_t, (B, m).

        Returns:
            The reading r_t (B, Q, S, m) of Eq. 29 in the arguments' dtype, and the state after the step.

        Raises:
            ValueError: naming the argument whose shape, dtype or device does not fit the state.
        """
        self._check(push, replace, pop, value)
        with torch.autocast(push.device.type, enabled=False):
            weights, state = self._advance(join_transitions(push, replace, pop), value)
            reading = torch.einsum("bic,bim->bcm", weights, state.vectors.double())
        return reading.view(*push.shape[:3], value.shape[1]).to(value.dtype), state

    def reorder(self, index: Tensor) -> NondeterministicStackState:
        """The state whose batch row i is this state's row ``index[i]``, for beam search.

        Args:
            index: (B',), a LongTensor; rows may be left out, repeated and permuted.

        Raises:
            ValueError: if ``index`` is not a one-dimensional LongTensor on the state's device.
        """
        check_index(index, self.vectors)
        batch_size = self.last.shape[0]
        num_symbols = self.last.shape[2] // self.num_states
        blocks = self.blocks.view(batch_size, num_symbols, *self.blocks.shape[1:])
        return NondeterministicStackState(
            num_states=self.num_states,
            vectors=self.vectors[index],
            last=self.last[index],
            blocks=blocks[index].flatten(0, 1),
            exponents=self.exponents[index],
            alpha=self.alpha[index],
            alpha_exponents=self.alpha_exponents[index],
        )

    def _advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, NondeterministicStackState]:
        """The reading's weights W_t (B, t + 1, C) and the next state, from log weights (B, C, 2 C + Q)."""
        column, exponents = next_column_with_exponents(
            self.last,
            self.blocks,
            self.exponents,
            torch.exp(lift(relative_to_largest(logits))),
            occurs=self.alpha[:, -1] > 0,
        )
        top, alpha_exponent = read_top_with_exponents(column.gamma, self.alpha, exponents.gamma + self.alpha_exponents)
        return top.weights, NondeterministicStackState(
            num_states=self.num_states,
            vectors=torch.cat([self.vectors, value[:, None].to(self.vectors.dtype)], 1),
            last=column.gamma,
            blocks=self._blocks_with_last(),
            exponents=_append_column(self.exponents, exponents.gamma),
            alpha=torch.cat([self.alpha, top.alpha[:, None]], 1),
            alpha_exponents=torch.cat([self.alpha_exponents, alpha_exponent[:, None]], 1),
        )

    def _check(self, push: Tensor, replace: Tensor, pop: Tensor, value: Tensor) -> None:
        batch_size, _, vector_size = self.vectors.shape
        num_symbols = self.last.shape[2] // self.num_states
        source = f"{batch_size} {self.num_states} {num_symbols}"
        sizes = Sizes()
        sizes.check("push", push, f"{source} {self.num_states} {num_symbols}")
        sizes.check("replace", replace, f"{source} {self.num_states} {num_symbols}")
        sizes.check("pop", pop, f"{source} {self.num_states}")
        sizes.check("value", value, f"{batch_size} {vector_size}")
        check_fits_state("push", push, self.vectors)

    def _blocks_with_last(self) -> Tensor:
        """The columns 0..t as blocks, (B * S, (t + 1) Q, (t + 1) C)."""
        size = self.last.shape[2]
        newest = as_blocks(self.last, self.num_states).flatten(0, 1)
        return torch.cat([torch.nn.functional.pad(self.blocks, (0, size)), newest], 1)


def _append_column(exponents: Tensor, column: Tensor) -> Tensor:
    """Exponents (B, t, t) with a new column (B, t + 1), and nothing below the old ones."""
    return torch.cat([torch.nn.functional.pad(exponents, (0, 0, 0, 1), value=DEAD), column[:, :, None]], 2)
