"""(a) to (d) of ``docs/algorithm.md``: inner weights, forward weights and the weights of the readings.

``inner`` is a record of :class:`Inner`: ``g`` holds g[i -> t][x -> (r, s)] at [cell][x][s][i][t][r], ``popped`` holds
g'[k -> t][(u, s) -> r] at [cell][s][k][u][t][r], ``exponents`` one integer for each cell. ``cells`` is a record of
:class:`Cells`. Q states, S symbols, C = Q S, T the size of a tile; TQ and other sides of matrices are padded.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import (
    cell_number,
    exponent_of,
    first_weight,
    is_inexact,
    is_shift_inexact,
    of_sequence,
    popped_offset,
    power_of_two,
    product,
    row_offset,
)


@triton.jit
def far_pops(
    inner, cells, span, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """The pops of (a) whose k is between the tiles of a cell, for some rows (x, i) and one symbol: a matrix product."""
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    row, block, symbol = tl.program_id(0), tl.program_id(1) // S, tl.program_id(1) % S
    column = row + span
    inner = of_sequence(inner, cells, tl.program_id(2).to(tl.int64), Q, S, T)
    here = cell_number(row, column, cells)
    exponent = tl.load(inner.exponents + here)
    m = block * ROWS + tl.arange(0, ROWS)
    of_row = row_offset(m, Q, S, T) + symbol * (T * T * Q)
    j = tl.arange(0, TQ)
    cell = of_row[:, None] + j[None, :]
    is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
    is_factor = (j < T * Q)[:, None] & (j < T * Q)[None, :]
    factor = symbol * (T * Q * T * Q) + j[:, None] * (T * Q) + j[None, :]
    sums = tl.zeros((ROWS, TQ), dtype=tl.float64)
    lost = 0
    for middle in range(row + 1, column):
        left, right = cell_number(row, middle, cells), cell_number(middle, column, cells)
        shift = tl.load(inner.exponents + left) + tl.load(inner.exponents + right) - exponent
        lost |= is_shift_inexact(shift).to(tl.int32)
        a = tl.load(inner.g + left * CELL + cell, mask=is_element, other=0.0)
        b = tl.load(inner.popped + right * (C * Q * T * T) + factor, mask=is_factor, other=0.0)
        sums += product(a, b) * power_of_two(shift)
    tl.store(inner.g + here * CELL + cell, sums, mask=is_element)
    if lost > 0:
        tl.store(inner.inexact, True)


@triton.jit
def near_cell(
    inner, cells, span, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr,
    QP: tl.constexpr, CP: tl.constexpr, IS_DIAGONAL: tl.constexpr, HAS_FAR: tl.constexpr,
):  # fmt: skip
    """The rest of (a), and (b), for a cell, one column after the other."""
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    POPPED: tl.constexpr = C * Q * T * T
    row = tl.program_id(0)
    column = row + span
    inner = of_sequence(inner, cells, tl.program_id(1).to(tl.int64), Q, S, T)
    here = cell_number(row, column, cells)
    g_here, popped_here = inner.g + here * CELL, inner.popped + here * POPPED
    above, below = row, column  # the numbers of the diagonal cells of its row and its column
    exponent = tl.load(inner.exponents + here)
    before_g, before_shift = g_here, exponent * 0
    if not IS_DIAGONAL:
        before = cell_number(row, column - 1, cells)
        before_g, before_shift = inner.g + before * CELL, tl.load(inner.exponents + before) - exponent

    m, j, r, w = tl.arange(0, ROWS), tl.arange(0, TQ), tl.arange(0, QP), tl.arange(0, CP)
    x, i, k = m // T, m % T, j // Q
    is_row, is_column = m < C * T, j < T * Q
    of_row = row_offset(m, Q, S, T)
    of_popped = popped_offset(m, Q, S, T)
    lost = tl.zeros((ROWS,), dtype=tl.int32)
    largest = tl.zeros((ROWS,), dtype=tl.float64)
    for t in range(T):
        now = column * T + t  # the coordinate
        exists = (now >= 2) & (now <= cells.length + 1)
        tops, states = tl.where(exists, C, 0), tl.where(exists, Q, 0)  # the interpreter cannot broadcast a Boolean
        step = inner.transitions + (now - 2) * (C * (2 * C + Q))
        from_top = step + w[:, None] * (2 * C + Q)
        is_weight = (w < tops)[:, None] & (r < Q)[None, :]
        # Column t - 1, at [row][w].
        is_first = now == column * T
        moving = tops
        if IS_DIAGONAL:
            moving = tl.where(is_first, 0, tops)
        shift = tl.where(is_first, before_shift, 0)
        lost |= (is_shift_inexact(shift) & (moving > 0)).to(tl.int32)
        pointer = tl.where(is_first, before_g + (T - 1) * Q, g_here + (t - 1) * Q)
        moved = tl.load(
            pointer + of_row[:, None] + (w % S)[None, :] * (T * T * Q) + (w // S)[None, :],
            mask=is_row[:, None] & (w < moving)[None, :], other=0.0,
        ) * power_of_two(shift)  # fmt: skip
        # (b)
        pops = product(moved, tl.load(from_top + 2 * C + r[None, :], mask=is_weight, other=0.0))
        tl.store(popped_here + of_popped[:, None] + t * Q + r[None, :], pops, mask=is_row[:, None] & (r < Q)[None, :])
        lost |= tl.max(is_inexact(pops).to(tl.int32), 1)
        tl.debug_barrier()
        # (a), at [row][r] for each symbol
        is_pushed = is_row & (row * T + i == now - 1)
        is_start = is_pushed & (row * T + i + x == 0)
        largest = tl.zeros((ROWS,), dtype=tl.float64)
        for s in range(S):
            at = g_here + of_row[:, None] + s * (T * T * Q) + t * Q + r[None, :]
            sums = product(moved, tl.load(from_top + C + r[None, :] * S + s, mask=is_weight, other=0.0))
            if HAS_FAR:
                sums += tl.load(at, mask=is_row[:, None] & (r < states)[None, :], other=0.0)
            reached = of_row[:, None] + s * (T * T * Q) + j[None, :]
            then = s * (T * Q * T * Q) + j[:, None] * (T * Q) + t * Q + r[None, :]
            kept = tl.load(g_here + reached, mask=is_row[:, None] & (k < t - 1)[None, :], other=0.0)
            popping = (k < t - 1)[:, None] & (r < Q)[None, :]
            sums += product(kept, tl.load(inner.popped + below * POPPED + then, mask=popping, other=0.0))
            if not IS_DIAGONAL:  # pops to columns of the diagonal cell
                is_kept = is_row[:, None] & is_column[None, :] & (i[:, None] < k[None, :])
                kept = tl.load(inner.g + above * CELL + reached, mask=is_kept, other=0.0)
                popping = is_column[:, None] & (r < Q)[None, :]
                sums += product(kept, tl.load(popped_here + then, mask=popping, other=0.0))
            pushes = tl.load(
                step + x[:, None] * (2 * C + Q) + r[None, :] * S + s,
                mask=is_pushed[:, None] & (r < states)[None, :], other=0.0,
            )  # fmt: skip
            sums = tl.where(is_pushed[:, None], pushes * power_of_two(-exponent), sums)
            sums = tl.where(is_start[:, None] & (r + s == 0)[None, :], 1.0, sums)
            sums = tl.where((now - row * T - i <= cells.limit)[:, None], sums, 0.0)
            tl.debug_barrier()
            tl.store(at, sums, mask=is_row[:, None] & (r < Q)[None, :])
            lost |= tl.max(is_inexact(sums).to(tl.int32), 1)
            largest = tl.maximum(largest, tl.max(sums, 1))
        tl.debug_barrier()
    if (tl.max(lost, 0) > 0) | ((span == 1) & is_shift_inexact(exponent)):
        tl.store(inner.inexact, True)
    # The next cell of the row begins with the exponent that this one ends with.
    if (column + 1 < cells.tiles) & (span + 1 < cells.bands):
        following = cell_number(row, column + 1, cells)
        tl.store(inner.exponents + following, exponent + exponent_of(tl.max(largest, 0)))


@triton.jit
def forward_weights(
    inner, cells, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr,
    QP: tl.constexpr, SP: tl.constexpr,
):  # fmt: skip
    """(c): alpha of all coordinates, [coordinate][(r, s)], with an exponent for each tile; one program per sequence."""
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    inner = of_sequence(inner, cells, tl.program_id(0).to(tl.int64), Q, S, T)
    s, r, m, j = tl.arange(0, SP), tl.arange(0, QP), tl.arange(0, ROWS), tl.arange(0, TQ)
    is_top = (s < S)[:, None] & (r < Q)[None, :]
    of_row = row_offset(m, Q, S, T)
    of_alpha = (m % T) * C + m // T
    is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
    lost = 0
    exponent = tl.load(inner.exponents) * 0
    largest = tl.full((), 1.0, dtype=tl.float64)
    for column in range(cells.tiles):
        exponent += exponent_of(largest)
        tl.store(inner.alpha_exponents + column, exponent)
        for symbol in range(S):  # from earlier tiles, for all times of this one
            totals = tl.zeros((ROWS, TQ), dtype=tl.float64)
            for row in range(tl.maximum(column - cells.bands + 1, 0), column):
                cell = cell_number(row, column, cells)
                shift = tl.load(inner.exponents + cell) + tl.load(inner.alpha_exponents + row) - exponent
                lost |= is_shift_inexact(shift).to(tl.int32)
                weights = tl.load(inner.alpha + row * (T * C) + of_alpha, mask=m < C * T, other=0.0)
                weights *= power_of_two(shift)
                at = inner.g + cell * CELL + of_row[:, None] + symbol * (T * T * Q) + j[None, :]
                totals += tl.load(at, mask=is_element, other=0.0) * weights[:, None]
            at = inner.alpha + (column * T + j // Q) * C + j % Q * S + symbol
            tl.store(at, tl.sum(totals, 0), mask=j < T * Q)
        tl.debug_barrier()
        diagonal = inner.g + column * CELL
        for t in range(T):
            now = column * T + t
            target = inner.alpha + now * C + r[None, :] * S + s[:, None]
            is_row = m < tl.where(now > 0, C * T, 0)
            weights = tl.load(inner.alpha + column * (T * C) + of_alpha, mask=is_row & (m % T < t), other=0.0)
            blocks = tl.load(
                diagonal + of_row[:, None, None] + t * Q + (s[:, None] * (T * T * Q) + r[None, :])[None, :, :],
                mask=is_row[:, None, None] & is_top[None, :, :], other=0.0,
            )  # fmt: skip
            sums = tl.load(target, mask=is_top, other=0.0) + tl.sum(blocks * weights[:, None, None], 0)
            if now == 0:
                sums = tl.where((s[:, None] + r[None, :]) == 0, 1.0, sums)
            tl.debug_barrier()
            tl.store(target, sums, mask=is_top)
            lost |= tl.max(tl.max(is_inexact(sums).to(tl.int32), 1), 0)
            if now <= cells.length + 1:
                largest = tl.max(tl.max(sums, 1), 0)
            tl.debug_barrier()
    if lost > 0:
        tl.store(inner.inexact, True)


@triton.jit
def reading_weights(
    inner, cells, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, CP: tl.constexpr
):  # fmt: skip
    """(d): W_t[i][(r, s)] of a cell, at [t - 1][(r, s)][i + 1], or from the first row of the window on."""
    C: tl.constexpr = Q * S
    column = tl.program_id(1)
    row = column - tl.program_id(0)
    inner = of_sequence(inner, cells, tl.program_id(2).to(tl.int64), Q, S, T)
    if row >= 0:
        cell = cell_number(row, column, cells)
        g = inner.g + cell * (C * C * T * T)
        shift = tl.load(inner.exponents + cell) + tl.load(inner.alpha_exponents + row)
        shift -= tl.load(inner.alpha_exponents + column)
        i, j, y = tl.arange(0, T), tl.arange(0, TQ), tl.arange(0, CP)
        t, r = j // Q, j % Q
        totals = tl.sum(
            tl.load(
                inner.alpha + (column * T + t)[:, None] * C + y[None, :],
                mask=(j < T * Q)[:, None] & (y < C)[None, :], other=0.0,
            ), 1,
        )  # fmt: skip
        totals = tl.where(totals > 0, totals, 1.0)
        now = column * T + t
        is_weight = (j < T * Q) & (now >= 2) & (now <= cells.length + 1)
        for s in range(S):
            sums = tl.zeros((T, TQ), dtype=tl.float64)
            for x in range(C):
                alpha_of_row = tl.load(inner.alpha + (row * T + i) * C + x)
                block = g + (x * S + s) * (T * T * Q) + i[:, None] * (T * Q) + j[None, :]
                sums += alpha_of_row[:, None] * tl.load(block, mask=(j < T * Q)[None, :], other=0.0)
            sums = sums * power_of_two(shift) / totals[None, :]
            at = (tl.cast(now - 2, tl.int64) * C + r * S + s) * cells.width
            tl.store(
                inner.weights + at[None, :] + (row * T + i - first_weight(column, cells, T))[:, None], sums,
                mask=is_weight[None, :] & (row * T + i <= cells.length)[:, None],
            )  # fmt: skip
