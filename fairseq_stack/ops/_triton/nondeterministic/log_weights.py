"""(l) of ``docs/algorithm.md``: the derivatives of log weights. Names as in ``backward.py``."""

from __future__ import annotations

import triton
import triton.language as tl

from .common import cell_number, of_sequence, popped_offset, power_of_two, product, row_offset


@triton.jit
def log_weight_gradients(
    inner, outer, cells, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr,
    CP: tl.constexpr, QP: tl.constexpr,
):  # fmt: skip
    """(l) for one step: the gradients of its log weights, (C, 2 C + Q)."""
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    WIDTH: tl.constexpr = 2 * C + Q
    now = tl.program_id(0) + 2
    column, t = now // T, now % T
    inner = of_sequence(inner, cells, tl.program_id(1).to(tl.int64), Q, S, T)
    outer = of_sequence(outer, cells, tl.program_id(1).to(tl.int64), Q, S, T)
    of_step = tl.cast(now - 2, tl.int64) * (C * WIDTH)
    transitions, gradients = inner.transitions + of_step, outer.transitions + of_step
    m, y, r = tl.arange(0, ROWS), tl.arange(0, CP), tl.arange(0, QP)
    is_row = m < C * T
    of_row = row_offset(m, Q, S, T)
    of_popped_row = popped_offset(m, Q, S, T)
    of_top = (y % S) * (T * T * Q) + y // S
    before_column = tl.where(t > 0, column, column - 1)
    before_t = tl.where(t > 0, t - 1, T - 1)
    of_replaces = tl.zeros((CP, CP), dtype=tl.float64)
    of_pops = tl.zeros((CP, QP), dtype=tl.float64)
    is_block = is_row[:, None] & (y < C)[None, :]
    for row in range(tl.maximum(column - cells.bands + 1, 0), before_column + 1):
        before, here = cell_number(row, before_column, cells), cell_number(row, column, cells)
        factor = power_of_two(tl.load(inner.exponents + before) - tl.load(inner.exponents + here))
        at = of_row[:, None] + of_top[None, :]
        moved = tl.load(inner.g + before * CELL + at + before_t * Q, mask=is_block, other=0.0) * factor
        replaced = tl.load(outer.g + here * CELL + at + t * Q, mask=is_block, other=0.0)
        popped = tl.load(
            outer.popped + here * (C * Q * T * T) + of_popped_row[:, None] + t * Q + r[None, :],
            mask=is_row[:, None] & (r < Q)[None, :], other=0.0,
        )  # fmt: skip
        turned = tl.trans(moved)
        of_replaces += product(turned, replaced)
        of_pops += product(turned, popped)
    of_weight = y[:, None] * WIDTH
    at = of_weight + C + y[None, :]
    is_weight = (y < C)[:, None] & (y < C)[None, :]
    tl.store(gradients + at, of_replaces * tl.load(transitions + at, mask=is_weight, other=0.0), mask=is_weight)
    at = of_weight + 2 * C + r[None, :]
    is_pop = (y < C)[:, None] & (r < Q)[None, :]
    tl.store(gradients + at, of_pops * tl.load(transitions + at, mask=is_pop, other=0.0), mask=is_pop)
    row = (now - 1) // T
    pushed = cell_number(row, column, cells) * CELL + ((now - 1) % T) * (T * Q) + t * Q
    of_block = y[:, None] * (S * T * T * Q) + of_top[None, :]
    of_pushes = tl.load(inner.g + pushed + of_block, mask=is_weight, other=0.0)
    of_pushes *= tl.load(outer.g + pushed + of_block, mask=is_weight, other=0.0)
    tl.store(gradients + of_weight + y[None, :], of_pushes, mask=is_weight)
