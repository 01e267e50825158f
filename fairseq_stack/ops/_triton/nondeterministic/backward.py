"""(i), (j), (k) and (m) of ``docs/algorithm.md``: the derivatives of forward weights and of inner weights.

Names as in ``forward.py``. The record ``outer`` holds derivatives: in ``g`` O[i -> t][x -> (r, s)], in ``popped``
P[k -> t][(u, s) -> r], in ``alpha`` 2^A_i dL/dalpha[i], in ``transitions`` the gradients of the log weights; and in
``weights`` b_t[i, y] / z_t, in the place of W_t[i][y].
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import cell_number, first_weight, of_sequence, popped_offset, power_of_two, product, row_offset


@triton.jit
def forward_derivatives(
    inner, outer, cells, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr,
    CP: tl.constexpr,
):  # fmt: skip
    """The second half of (i): 2^A_i dL/dalpha[i] of all coordinates, at [coordinate][x]; one program per sequence.

    They are 0 where alpha is 0, and products with blocks that are 0 are left out: derivatives there may be infinite.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    inner = of_sequence(inner, cells, tl.program_id(0).to(tl.int64), Q, S, T)
    outer = of_sequence(outer, cells, tl.program_id(0).to(tl.int64), Q, S, T)
    beta, derivatives = outer.weights, outer.alpha
    m, j, x = tl.arange(0, ROWS), tl.arange(0, TQ), tl.arange(0, CP)
    of_row = row_offset(m, Q, S, T)
    is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
    for rows in range(cells.tiles):
        row = cells.tiles - 1 - rows
        i = row * T + m % T
        totals = tl.zeros((ROWS, TQ), dtype=tl.float64)
        for column in range(row + 1, tl.minimum(cells.tiles, row + cells.bands)):
            cell = cell_number(row, column, cells)
            weight_row = i - first_weight(column, cells, T)
            shift = tl.load(inner.exponents + cell) + tl.load(inner.alpha_exponents + row)
            shift -= tl.load(inner.alpha_exponents + column)
            now = (column * T + j // Q).to(tl.int64)
            is_weight = is_element & ((now >= 2) & (now <= cells.length + 1))[None, :] & (i <= cells.length)[:, None]
            for s in range(S):
                top = j % Q * S + s
                at = ((now - 2) * C + top)[None, :] * cells.width + weight_row[:, None]
                tops = tl.load(beta + at, mask=is_weight, other=0.0)
                is_time = (j < T * Q) & (now <= cells.length + 1)
                tops += tl.load(derivatives + now * C + top, mask=is_time, other=0.0)[None, :]
                block = inner.g + cell * CELL + of_row[:, None] + s * (T * T * Q) + j[None, :]
                blocks = tl.load(block, mask=is_element, other=0.0)
                totals += tl.where(blocks > 0, tops * blocks, 0.0) * power_of_two(shift)
        tl.store(derivatives + i * C + m // T, tl.sum(totals, 1), mask=m < C * T)
        tl.debug_barrier()
        diagonal = inner.g + row * CELL
        first_of_tile = row * T - first_weight(row, cells, T)
        for rest in range(T):
            k = T - 1 - rest
            sums = tl.load(derivatives + (row * T + k) * C + x, mask=x < C, other=0.0)
            now = (row * T + j // Q).to(tl.int64)
            is_weight = (j < T * Q) & (j // Q > k) & (now >= 2) & (now <= cells.length + 1)
            for s in range(S):
                top = j % Q * S + s
                at = ((now - 2) * C + top) * cells.width + first_of_tile + k
                tops = tl.load(beta + at, mask=is_weight, other=0.0)
                tops += tl.load(derivatives + now * C + top, mask=is_weight, other=0.0)
                block = diagonal + (x * S + s)[:, None] * (T * T * Q) + k * (T * Q) + j[None, :]
                blocks = tl.load(block, mask=(x < C)[:, None] & is_weight[None, :], other=0.0)
                sums += tl.sum(tl.where(blocks > 0, tops[None, :] * blocks, 0.0), 1)
            occurs = tl.load(inner.alpha + (row * T + k) * C + x, mask=x < C, other=0.0) > 0
            tl.debug_barrier()
            tl.store(derivatives + (row * T + k) * C + x, tl.where(occurs, sums, 0.0), mask=x < C)
            tl.debug_barrier()


@triton.jit
def far_outer(
    inner, outer, cells, span, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr,
    ROWS: tl.constexpr, ALL_ROWS: tl.constexpr,
):  # fmt: skip
    """What O of a cell gets from the cells to its right, and P from the cells above it, as matrix products.

    A cell and a symbol have some programs for the rows (x, i) of O, and a last one for P.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    POPPED: tl.constexpr = C * Q * T * T
    row, block, symbol = tl.program_id(0), tl.program_id(1) // S, tl.program_id(1) % S
    column = row + span
    inner = of_sequence(inner, cells, tl.program_id(2).to(tl.int64), Q, S, T)
    outer = of_sequence(outer, cells, tl.program_id(2).to(tl.int64), Q, S, T)
    exponents = inner.exponents
    here = cell_number(row, column, cells)
    exponent = tl.load(exponents + here)
    j = tl.arange(0, TQ)
    square = symbol * (T * Q * T * Q) + j[:, None] * (T * Q) + j[None, :]
    is_square = (j < T * Q)[:, None] & (j < T * Q)[None, :]
    if block < ALL_ROWS // ROWS:
        m = block * ROWS + tl.arange(0, ROWS)
        of_row = row_offset(m, Q, S, T) + symbol * (T * T * Q)
        at = of_row[:, None] + j[None, :]
        is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
        sums = tl.zeros((ROWS, TQ), dtype=tl.float64)
        for later in range(column + 1, tl.minimum(cells.tiles, row + cells.bands)):
            left, right = cell_number(row, later, cells), cell_number(column, later, cells)
            shift = exponent + tl.load(exponents + right) - tl.load(exponents + left)
            a = tl.load(outer.g + left * CELL + at, mask=is_element, other=0.0)
            b = tl.load(inner.popped + right * POPPED + square, mask=is_square, other=0.0)
            sums += product(a, tl.trans(b)) * power_of_two(shift)
        tl.store(outer.g + here * CELL + at, sums, mask=is_element)
    else:
        totals = tl.zeros((TQ, TQ), dtype=tl.float64)
        for earlier in range(tl.maximum(column - cells.bands + 1, 0), row):
            left, right = cell_number(earlier, row, cells), cell_number(earlier, column, cells)
            shift = tl.load(exponents + left) + exponent - tl.load(exponents + right)
            part = tl.zeros((TQ, TQ), dtype=tl.float64)
            for some in range(ALL_ROWS // ROWS):
                m = some * ROWS + tl.arange(0, ROWS)
                of_row = row_offset(m, Q, S, T) + symbol * (T * T * Q)
                at = of_row[:, None] + j[None, :]
                is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
                a = tl.load(inner.g + left * CELL + at, mask=is_element, other=0.0)
                b = tl.load(outer.g + right * CELL + at, mask=is_element, other=0.0)
                part += product(tl.trans(a), b)
            totals += part * power_of_two(shift)
        tl.store(outer.popped + here * POPPED + square, totals, mask=is_square)


@triton.jit
def near_outer(
    inner, outer, cells, span, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr,
    ROWS: tl.constexpr, QP: tl.constexpr, CP: tl.constexpr,
):  # fmt: skip
    """The rest of O and P of a cell, one column after the other, from the last.

    They are 0 where g and g' are 0: otherwise they could be infinite there.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    POPPED: tl.constexpr = C * Q * T * T
    row = tl.program_id(0)
    column = row + span
    inner = of_sequence(inner, cells, tl.program_id(1).to(tl.int64), Q, S, T)
    outer = of_sequence(outer, cells, tl.program_id(1).to(tl.int64), Q, S, T)
    here = cell_number(row, column, cells)
    outer_here, of_popped_here = outer.g + here * CELL, outer.popped + here * POPPED
    g_here, popped_here = inner.g + here * CELL, inner.popped + here * POPPED
    above, below = row, column  # the numbers of the diagonal cells
    exponent = tl.load(inner.exponents + here)
    after_shift = exponent * 0
    after = here
    is_followed = (column + 1 < cells.tiles) & (span + 1 < cells.bands)
    if is_followed:
        after = cell_number(row, column + 1, cells)
        after_shift = exponent - tl.load(inner.exponents + after)
    seed_shift = exponent + tl.load(inner.alpha_exponents + row) - tl.load(inner.alpha_exponents + column)

    m, j, r, y = tl.arange(0, ROWS), tl.arange(0, TQ), tl.arange(0, QP), tl.arange(0, CP)
    x, i, k = m // T, m % T, j // Q
    is_row, is_column = m < C * T, j < T * Q
    of_row = row_offset(m, Q, S, T)
    of_popped_row = popped_offset(m, Q, S, T)
    of_top = (y % S) * (T * T * Q) + y // S
    weight_row = row * T + i - first_weight(column, cells, T)
    alpha_here = tl.load(inner.alpha + (row * T + i) * C + x, mask=is_row, other=0.0) * power_of_two(seed_shift)
    for rest in range(T):
        t = T - 1 - rest
        now = column * T + t  # the coordinate
        exists = (now >= 2) & (now <= cells.length + 1)
        states = tl.where(exists, Q, 0)
        is_before_next = exists & (now <= cells.length) & ((rest > 0) | is_followed)
        tops_next, states_next = tl.where(is_before_next, C, 0), tl.where(is_before_next, Q, 0)
        is_past = is_row & (row * T + i < now) & (now - row * T - i <= cells.limit)
        # O and P of the next column, at [row][top] and [row][state]
        next_outer, next_popped = outer_here + (t + 1) * Q, of_popped_here + (t + 1) * Q
        shift = exponent * 0
        if rest == 0:
            next_outer, next_popped = outer.g + after * CELL, outer.popped + after * POPPED
            shift = after_shift
        replaced = tl.load(
            next_outer + of_row[:, None] + of_top[None, :], mask=is_row[:, None] & (y < tops_next)[None, :], other=0.0
        ) * power_of_two(shift)  # fmt: skip
        is_popped = is_row & (row * T + i > 0)
        next_pops = tl.load(
            next_popped + of_popped_row[:, None] + r[None, :],
            mask=is_popped[:, None] & (r < states_next)[None, :], other=0.0,
        ) * power_of_two(shift)  # fmt: skip
        step = inner.transitions + (now - 1) * (C * (2 * C + Q))
        # O, at [row][r] for each symbol: from the readings, far pops, the next column, and pops of later columns
        for s in range(S):
            top = r * S + s
            is_element = is_past[:, None] & (r < states)[None, :]
            seed = tl.load(
                outer.weights + (tl.cast(now - 2, tl.int64) * C + top)[None, :] * cells.width + weight_row[:, None],
                mask=is_element, other=0.0,
            )  # fmt: skip
            seed += tl.load(outer.alpha + now * C + top, mask=r < states, other=0.0)[None, :]
            place = of_row[:, None] + s * (T * T * Q) + t * Q + r[None, :]
            at = outer_here + place
            sums = seed * alpha_here[:, None] + tl.load(at, mask=is_element, other=0.0)
            of_step = step + top[None, :] * (2 * C + Q)
            replaces = tl.load(of_step + C + y[:, None], mask=(y < C)[:, None] & (r < states_next)[None, :], other=0.0)
            sums += product(replaced, replaces)
            pops = tl.load(of_step + 2 * C + r[:, None], mask=(r < Q)[:, None] & (r < states_next)[None, :], other=0.0)
            sums += product(next_pops, pops)
            is_later = is_column & (k >= t + 2)
            reached = tl.load(
                outer_here + of_row[:, None] + s * (T * T * Q) + j[None, :],
                mask=is_row[:, None] & is_later[None, :], other=0.0,
            )  # fmt: skip
            then = tl.load(
                inner.popped + below * POPPED + s * (T * Q * T * Q) + (t * Q + r)[None, :] * (T * Q) + j[:, None],
                mask=is_later[:, None] & (r < states)[None, :], other=0.0,
            )  # fmt: skip
            sums += product(reached, then)
            is_reached = tl.load(g_here + place, mask=is_element, other=0.0) > 0
            tl.debug_barrier()
            tl.store(at, tl.where(is_reached, sums, 0.0), mask=is_row[:, None] & (r < Q)[None, :])
        tl.debug_barrier()
        # P, at [(k, u)][r] for each symbol: from far pops, and from the pops into the rows of this tile
        is_pop = is_column & (row * T + k > 0) & (row * T + k < now - 1)
        for s in range(S):
            of_symbol = of_row[:, None] + s * (T * T * Q)
            is_left = is_row[:, None] & is_column[None, :] & (i[:, None] < k[None, :])
            left = tl.load(inner.g + above * CELL + of_symbol + j[None, :], mask=is_left, other=0.0)
            part_here = tl.load(
                outer_here + of_symbol + t * Q + r[None, :], mask=is_row[:, None] & (r < states)[None, :], other=0.0
            )
            place = s * (T * Q * T * Q) + j[:, None] * (T * Q) + t * Q + r[None, :]
            at = of_popped_here + place
            is_element = is_pop[:, None] & (r < states)[None, :]
            totals = tl.load(at, mask=is_element, other=0.0) + product(tl.trans(left), part_here)
            was_popped = tl.load(popped_here + place, mask=is_element, other=0.0) > 0
            tl.debug_barrier()
            tl.store(at, tl.where(was_popped, totals, 0.0), mask=is_column[:, None] & (r < Q)[None, :])
        tl.debug_barrier()
