"""Launches the kernels: sizes, memory and grids."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from . import backward, forward


class Inner(NamedTuple):
    """What the forward pass leaves."""

    transitions: Tensor  # D_t, (B, n, C, 2 C + Q), up to a factor for each step
    g: Tensor  # (B, cells, C, S, T, T, Q)
    popped: Tensor  # (B, cells, S, T, Q, T, Q)
    exponents: Tensor  # (B, cells)
    alpha: Tensor  # (B, tiles, T, C)
    alpha_exponents: Tensor  # (B, tiles)
    weights: Tensor  # W, (B, n, C, n + 1)
    inexact: Tensor  # (B,), not 0 where float64 is not precise enough


class Sizes(NamedTuple):
    """Sizes of a batch; tiles have T rows and columns."""

    batch: int
    length: int
    num_states: int
    num_symbols: int
    tile: int

    @property
    def top(self) -> int:
        """C."""
        return self.num_states * self.num_symbols

    @property
    def tiles(self) -> int:
        """How many tiles the coordinates 0..n + 1 take."""
        return (self.length + 1) // self.tile + 1

    @property
    def cells(self) -> int:
        return self.tiles * (self.tiles + 1) // 2

    @property
    def constants(self) -> dict[str, int]:
        return {"Q": self.num_states, "S": self.num_symbols, "T": self.tile}

    @property
    def rows(self) -> int:
        """The rows (x, i) of a cell, padded."""
        return max(16, triton.next_power_of_2(self.top * self.tile))

    @property
    def warps(self) -> int:
        """How many warps a program has that holds all rows of a cell."""
        return 4 if self.rows <= 128 else 8

    @property
    def columns(self) -> int:
        """The columns (t, r) of a cell, padded."""
        return max(16, triton.next_power_of_2(self.tile * self.num_states))

    @property
    def padded(self) -> dict[str, int]:
        """Q and S."""
        return {"QP": triton.next_power_of_2(self.num_states), "SP": triton.next_power_of_2(self.num_symbols)}

    @property
    def padded_top(self) -> int:
        return triton.next_power_of_2(self.top)


def inner_weights(transitions: Tensor, num_states: int, tile: int) -> Inner:
    """The forward pass, for D_t (B, n, C, 2 C + Q)."""
    batch, length, top, _ = transitions.shape
    sizes = Sizes(batch, length, num_states, top // num_states, tile)
    made = transitions.new_empty
    block = tile * tile * num_states
    g = made(batch, sizes.cells, top * sizes.num_symbols * block)
    popped = made(batch, sizes.cells, sizes.num_symbols * num_states * block)
    exponents = made(batch, sizes.cells, dtype=torch.int32).zero_()
    inexact = made(batch, dtype=torch.int32).zero_()
    alpha = made(batch, sizes.tiles * tile, top)
    alpha_exponents = made(batch, sizes.tiles, dtype=torch.int32)
    weights = made(batch, length, top, length + 1).zero_()
    rows = min(sizes.rows, 64)
    for span in range(sizes.tiles):
        cells = sizes.tiles - span
        if span > 1:
            forward.far_pops[cells, sizes.rows // rows * sizes.num_symbols, batch](
                g, popped, exponents, inexact, span, sizes.cells, **sizes.constants, TQ=sizes.columns, ROWS=rows
            )
        forward.near_cell[cells, batch](
            transitions, g, popped, exponents, inexact, length, span, sizes.cells,
            **sizes.constants, **sizes.padded, ROWS=sizes.rows, CP=sizes.padded_top,
            IS_DIAGONAL=span == 0, HAS_FAR=span > 1, num_warps=sizes.warps,
        )  # fmt: skip
    common: dict[str, Any] = {**sizes.constants, "TQ": sizes.columns}
    forward.forward_weights[batch,](
        g, exponents, alpha, alpha_exponents, inexact, length, sizes.tiles, sizes.cells,
        **common, **sizes.padded, ROWS=sizes.rows, num_warps=sizes.warps,
    )  # fmt: skip
    forward.reading_weights[sizes.tiles, sizes.tiles, batch](
        g, exponents, alpha, alpha_exponents, weights, length, sizes.tiles, sizes.cells,
        **common, CP=sizes.padded_top,
    )  # fmt: skip
    return Inner(transitions, g, popped, exponents, alpha, alpha_exponents, weights, inexact)


def log_weight_gradients(inner: Inner, beta: Tensor, num_states: int, tile: int) -> Tensor:
    """The backward pass: the gradients of the log weights (B, n, C, 2 C + Q).

    Args:
        inner: what the forward pass returned.
        beta: b_t[i, y] of (h), (B, n, C, n + 1) in float64.
        num_states: Q.
        tile: T.
    """
    batch, length, top, width = inner.transitions.shape
    sizes = Sizes(batch, length, num_states, top // num_states, tile)
    totals = inner.alpha.flatten(1, 2).view(batch, -1, top)[:, 2 : length + 2].sum(2)
    beta = beta / torch.where(totals > 0, totals, 1)[:, :, None, None]
    derivatives = torch.zeros_like(inner.alpha)
    outer, of_popped = torch.empty_like(inner.g), torch.empty_like(inner.popped)
    counts = length, sizes.tiles, sizes.cells
    common: dict[str, Any] = sizes.constants
    backward.forward_derivatives[batch,](
        inner.g, inner.exponents, inner.alpha_exponents, beta, derivatives, *counts, **common, TQ=sizes.columns,
        ROWS=sizes.rows, CP=sizes.padded_top, num_warps=sizes.warps,
    )  # fmt: skip
    rows = min(sizes.rows, 64)
    for span in reversed(range(sizes.tiles)):
        cells = sizes.tiles - span
        backward.far_outer[cells, (sizes.rows // rows + 1) * sizes.num_symbols, batch](
            inner.g, inner.popped, outer, of_popped, inner.exponents, span, sizes.tiles, sizes.cells,
            **common, TQ=sizes.columns, ROWS=rows, ALL_ROWS=sizes.rows,
        )  # fmt: skip
        backward.near_outer[cells, batch](
            inner.transitions, inner.g, inner.popped, outer, of_popped, inner.exponents, inner.alpha,
            inner.alpha_exponents, beta, derivatives, length, span, sizes.tiles, sizes.cells,
            **common, **sizes.padded, ROWS=sizes.rows, num_warps=sizes.warps,
        )  # fmt: skip
    gradients = beta.new_empty(batch, length, top, width)
    backward.log_weight_gradients[length, batch](
        inner.transitions, inner.g, outer, of_popped, inner.exponents, gradients, length, sizes.cells,
        **common, ROWS=sizes.rows, CP=max(16, sizes.padded_top), QP=max(16, sizes.padded["QP"]), num_stages=1,
    )  # fmt: skip
    return gradients
