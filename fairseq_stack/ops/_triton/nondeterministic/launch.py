"""Launches the kernels: memory and grids."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..devices import on_their_device
from . import backward, forward, log_weights
from .sizes import Sizes


class Inner(NamedTuple):
    """What the forward pass leaves."""

    transitions: Tensor  # D_t, (B, n, C, 2 C + Q), up to a factor for each step
    g: Tensor  # (B, cells, C, S, T, T, Q)
    popped: Tensor  # (B, cells, S, T, Q, T, Q)
    exponents: Tensor  # (B, cells)
    alpha: Tensor  # (B, tiles, T, C)
    alpha_exponents: Tensor  # (B, tiles)
    weights: Tensor  # W, (B, n, C, width)
    inexact: Tensor  # (B,), not 0 where float64 is not precise enough


@on_their_device
def inner_weights(transitions: Tensor, sizes: Sizes) -> Inner:
    """The forward pass, for D_t (B, n, C, 2 C + Q)."""
    batch, length, top, bands = sizes.batch, sizes.length, sizes.top, sizes.bands
    made = transitions.new_empty
    block = sizes.tile**2 * sizes.num_states
    g = made(batch, sizes.cells, top * sizes.num_symbols * block)
    popped = made(batch, sizes.cells, sizes.num_symbols * sizes.num_states * block)
    exponents = made(batch, sizes.cells, dtype=torch.int32).zero_()
    inexact = made(batch, dtype=torch.int32).zero_()
    alpha = made(batch, sizes.tiles * sizes.tile, top)
    alpha_exponents = made(batch, sizes.tiles, dtype=torch.int32)
    weights = made(batch, length, top, sizes.width).zero_()
    rows, counts = min(sizes.rows, 64), (sizes.tiles, sizes.cells)
    common: dict[str, Any] = {**sizes.constants, "TQ": sizes.columns}
    for span in range(bands):
        cells = sizes.tiles - span
        if span > 1:
            forward.far_pops[cells, sizes.rows // rows * sizes.num_symbols, batch](
                g, popped, exponents, inexact, span, *counts, **common, ROWS=rows, num_stages=sizes.stages
            )
        forward.near_cell[cells, batch](
            transitions, g, popped, exponents, inexact, length, sizes.limit, bands, span, *counts,
            **common, **sizes.factors, ROWS=sizes.rows, IS_DIAGONAL=span == 0, HAS_FAR=span > 1, num_warps=sizes.warps,
        )  # fmt: skip
    forward.forward_weights[batch,](
        g, exponents, alpha, alpha_exponents, inexact, length, bands, *counts,
        **common, **sizes.padded, ROWS=sizes.rows, num_warps=sizes.warps,
    )  # fmt: skip
    forward.reading_weights[bands, sizes.tiles, batch](
        g, exponents, alpha, alpha_exponents, weights, length, sizes.width, bands, *counts,
        **common, CP=sizes.padded_top, HAS_WINDOW=sizes.window is not None,
    )  # fmt: skip
    return Inner(transitions, g, popped, exponents, alpha, alpha_exponents, weights, inexact)


@on_their_device
def log_weight_gradients(inner: Inner, beta: Tensor, sizes: Sizes) -> Tensor:
    """The backward pass: the gradients of the log weights (B, n, C, 2 C + Q).

    Args:
        inner: what the forward pass returned.
        beta: b_t[i, y] of (h), in float64, as ``inner.weights``.
        sizes: as in the forward pass.
    """
    batch, length, top, bands = sizes.batch, sizes.length, sizes.top, sizes.bands
    totals = inner.alpha.flatten(1, 2).view(batch, -1, top)[:, 2 : length + 2].sum(2)
    beta = (beta / torch.where(totals > 0, totals, 1)[:, :, None, None]).contiguous()
    derivatives = torch.zeros_like(inner.alpha)
    outer, of_popped = torch.empty_like(inner.g), torch.empty_like(inner.popped)
    counts = bands, sizes.tiles, sizes.cells
    common: dict[str, Any] = {**sizes.constants, "TQ": sizes.columns}
    layout = {"HAS_WINDOW": sizes.window is not None}
    backward.forward_derivatives[batch,](
        inner.g, inner.exponents, inner.alpha, inner.alpha_exponents, beta, derivatives, length, sizes.width, *counts,
        **common, **layout, ROWS=sizes.rows, CP=sizes.padded_top, num_warps=sizes.warps,
    )  # fmt: skip
    rows = min(sizes.rows, 64)
    for span in reversed(range(bands)):
        cells = sizes.tiles - span
        backward.far_outer[cells, (sizes.rows // rows + 1) * sizes.num_symbols, batch](
            inner.g, inner.popped, outer, of_popped, inner.exponents, span, *counts,
            **common, ROWS=rows, ALL_ROWS=sizes.rows, num_stages=sizes.stages,
        )  # fmt: skip
        backward.near_outer[cells, batch](
            inner.transitions, inner.g, inner.popped, outer, of_popped, inner.exponents, inner.alpha,
            inner.alpha_exponents, beta, derivatives, length, sizes.width, sizes.limit, span, *counts,
            **common, **layout, **sizes.factors, ROWS=sizes.rows, num_warps=sizes.warps,
        )  # fmt: skip
    gradients = torch.empty_like(inner.transitions)
    log_weights.log_weight_gradients[length, batch](
        inner.transitions, inner.g, outer, of_popped, inner.exponents, gradients, length, *counts,
        **sizes.constants, **sizes.factors, ROWS=sizes.rows, num_stages=1,
    )  # fmt: skip
    return gradients
