"""Launches the kernels: memory and grids."""

from __future__ import annotations

import torch
from torch import Tensor

from . import backward, forward, log_weights
from .sizes import Inner, Sizes

ROWS = 64  # of a program that computes a part of a cell


def inner_weights(transitions: Tensor, sizes: Sizes) -> Inner:
    """The forward pass, for D_t (B, n, C, 2 C + Q)."""
    inner, cells = sizes.empty(transitions)._replace(transitions=transitions), sizes.numbers
    for x in (inner.weights, inner.exponents, inner.inexact):
        x.zero_()
    constants, rows = sizes.constants, min(sizes.rows, ROWS)
    for span in range(sizes.bands):
        if span > 1:
            forward.far_pops[sizes.tiles - span, sizes.rows // rows * sizes.num_symbols, sizes.batch](
                inner, cells, span, **constants, ROWS=rows, num_stages=sizes.stages
            )
        forward.near_cell[sizes.tiles - span, sizes.batch](
            inner, cells, span, **constants, **sizes.factors, ROWS=sizes.rows, IS_DIAGONAL=span == 0, HAS_FAR=span > 1,
            num_warps=sizes.warps,
        )  # fmt: skip
    forward.forward_weights[sizes.batch,](
        inner, cells, **constants, **sizes.padded, ROWS=sizes.rows, num_warps=sizes.warps
    )
    forward.reading_weights[sizes.bands, sizes.tiles, sizes.batch](inner, cells, **constants, CP=sizes.padded_top)
    return inner


def log_weight_gradients(inner: Inner, beta: Tensor, sizes: Sizes) -> Tensor:
    """The backward pass: the gradients of the log weights (B, n, C, 2 C + Q).

    Args:
        inner: what the forward pass returned.
        beta: b_t[i, y] of (h), in float64, as ``inner.weights``.
        sizes: as in the forward pass.
    """
    cells, constants, rows = sizes.numbers, sizes.constants, min(sizes.rows, ROWS)
    totals = inner.alpha[:, 2 : sizes.length + 2].sum(2)
    outer = inner._replace(
        weights=(beta / torch.where(totals > 0, totals, 1)[:, :, None, None]).contiguous(),
        transitions=torch.empty_like(inner.transitions), g=torch.empty_like(inner.g),
        popped=torch.empty_like(inner.popped), alpha=torch.zeros_like(inner.alpha),
    )  # fmt: skip
    backward.forward_derivatives[sizes.batch,](
        inner, outer, cells, **constants, ROWS=sizes.rows, CP=sizes.padded_top, num_warps=sizes.warps
    )
    for span in reversed(range(sizes.bands)):
        backward.far_outer[sizes.tiles - span, (sizes.rows // rows + 1) * sizes.num_symbols, sizes.batch](
            inner, outer, cells, span, **constants, ROWS=rows, ALL_ROWS=sizes.rows, num_stages=sizes.stages
        )
        backward.near_outer[sizes.tiles - span, sizes.batch](
            inner, outer, cells, span, **constants, **sizes.factors, ROWS=sizes.rows, num_warps=sizes.warps
        )
    log_weights.log_weight_gradients[sizes.length, sizes.batch](
        inner, outer, cells, **constants, **sizes.factors, ROWS=sizes.rows, num_stages=1
    )
    return outer.transitions
