"""(i), (j), (k) and (m) of ``docs/algorithm.md``: the derivatives of forward weights and of inner weights.

Names as in ``forward.py``: ``outer`` holds O[i -> t][x -> (r, s)] like ``g``, and ``of_popped`` holds
P[k -> t][(u, s) -> r] like ``popped``. ``beta`` holds b_t[i, y] / z_t where ``weights`` holds
W_t[i][y].
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import cell_number, first_weight, popped_offset, power_of_two, product, row_offset


@triton.jit
def forward_derivatives(
    g, exponents, alpha, alpha_exponents, beta, derivatives, length, width, bands, num_tiles, num_cells,
    Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr, CP: tl.constexpr,
    HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """The second half of (i): 2^A_i dL/dalpha[i] of all coordinates, at [coordinate][x]; one program per sequence.

    They are 0 where alpha is 0, and products with blocks that are 0 are left out: derivatives there may be infinite.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    sequence = tl.program_id(0).to(tl.int64)
    g += sequence * num_cells * CELL
    exponents += sequence * num_cells
    alpha += sequence * num_tiles * (T * C)
    alpha_exponents += sequence * num_tiles
    beta += sequence * length * C * width
    derivatives += sequence * num_tiles * (T * C)
    m, j, x = tl.arange(0, ROWS), tl.arange(0, TQ), tl.arange(0, CP)
    of_row = row_offset(m, Q, S, T)
    is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
    for rows in range(num_tiles):
        row = num_tiles - 1 - rows
        i = row * T + m % T
        totals = tl.zeros((ROWS, TQ), dtype=tl.float64)
        for column in range(row + 1, tl.minimum(num_tiles, row + bands)):  # from later tiles, for all rows of this one
            cell = cell_number(row, column, num_tiles)
            weight_row = i - first_weight(column, bands, T, HAS_WINDOW)
            shift = tl.load(exponents + cell) + tl.load(alpha_exponents + row) - tl.load(alpha_exponents + column)
            now = (column * T + j // Q).to(tl.int64)
            is_weight = is_element & ((now >= 2) & (now <= length + 1))[None, :] & (i <= length)[:, None]
            for s in range(S):
                top = j % Q * S + s
                tops = tl.load(
                    beta + ((now - 2) * C + top)[None, :] * width + weight_row[:, None], mask=is_weight, other=0.0
                )
                tops += tl.load(derivatives + now * C + top, mask=(j < T * Q) & (now <= length + 1), other=0.0)[None, :]
                block = g + cell * CELL + of_row[:, None] + s * (T * T * Q) + j[None, :]
                blocks = tl.load(block, mask=is_element, other=0.0)
                totals += tl.where(blocks > 0, tops * blocks, 0.0) * power_of_two(shift)
        tl.store(derivatives + i * C + m // T, tl.sum(totals, 1), mask=m < C * T)
        tl.debug_barrier()
        diagonal = g + row * CELL
        first_of_tile = row * T - first_weight(row, bands, T, HAS_WINDOW)
        for rest in range(T):
            k = T - 1 - rest
            sums = tl.load(derivatives + (row * T + k) * C + x, mask=x < C, other=0.0)
            now = (row * T + j // Q).to(tl.int64)
            is_weight = (j < T * Q) & (j // Q > k) & (now >= 2) & (now <= length + 1)
            for s in range(S):
                top = j % Q * S + s
                tops = tl.load(beta + ((now - 2) * C + top) * width + first_of_tile + k, mask=is_weight, other=0.0)
                tops += tl.load(derivatives + now * C + top, mask=is_weight, other=0.0)
                block = diagonal + (x * S + s)[:, None] * (T * T * Q) + k * (T * Q) + j[None, :]
                blocks = tl.load(block, mask=(x < C)[:, None] & is_weight[None, :], other=0.0)
                sums += tl.sum(tl.where(blocks > 0, tops[None, :] * blocks, 0.0), 1)
            occurs = tl.load(alpha + (row * T + k) * C + x, mask=x < C, other=0.0) > 0
            tl.debug_barrier()
            tl.store(derivatives + (row * T + k) * C + x, tl.where(occurs, sums, 0.0), mask=x < C)
            tl.debug_barrier()


@triton.jit
def far_outer(
    g, popped, outer, of_popped, exponents, span, bands, num_tiles, num_cells,
    Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr,
    ALL_ROWS: tl.constexpr,
):  # fmt: skip
    """What O of a cell gets from the cells to its right, and P from the cells above it, as matrix products.

    A cell and a symbol have some programs for the rows (x, i) of O, and a last one for P.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    POPPED: tl.constexpr = C * Q * T * T
    row, symbol, sequence = tl.program_id(0), tl.program_id(1) % S, tl.program_id(2).to(tl.int64)
    block = tl.program_id(1) // S
    column = row + span
    g += sequence * num_cells * CELL
    outer += sequence * num_cells * CELL
    popped += sequence * num_cells * POPPED
    of_popped += sequence * num_cells * POPPED
    exponents += sequence * num_cells
    here = cell_number(row, column, num_tiles)
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
        for later in range(column + 1, tl.minimum(num_tiles, row + bands)):
            left, right = cell_number(row, later, num_tiles), cell_number(column, later, num_tiles)
            shift = exponent + tl.load(exponents + right) - tl.load(exponents + left)
            a = tl.load(outer + left * CELL + at, mask=is_element, other=0.0)
            b = tl.load(popped + right * POPPED + square, mask=is_square, other=0.0)
            sums += product(a, tl.trans(b)) * power_of_two(shift)
        tl.store(outer + here * CELL + at, sums, mask=is_element)
    else:
        totals = tl.zeros((TQ, TQ), dtype=tl.float64)
        for earlier in range(tl.maximum(column - bands + 1, 0), row):
            left, right = cell_number(earlier, row, num_tiles), cell_number(earlier, column, num_tiles)
            shift = tl.load(exponents + left) + exponent - tl.load(exponents + right)
            part = tl.zeros((TQ, TQ), dtype=tl.float64)
            for some in range(ALL_ROWS // ROWS):
                m = some * ROWS + tl.arange(0, ROWS)
                of_row = row_offset(m, Q, S, T) + symbol * (T * T * Q)
                at = of_row[:, None] + j[None, :]
                is_element = (m < C * T)[:, None] & (j < T * Q)[None, :]
                a = tl.load(g + left * CELL + at, mask=is_element, other=0.0)
                b = tl.load(outer + right * CELL + at, mask=is_element, other=0.0)
                part += product(tl.trans(a), b)
            totals += part * power_of_two(shift)
        tl.store(of_popped + here * POPPED + square, totals, mask=is_square)


@triton.jit
def near_outer(
    transitions, g, popped, outer, of_popped, exponents, alpha, alpha_exponents, beta, derivatives,
    length, width, window, span, bands, num_tiles, num_cells,
    Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr, TQ: tl.constexpr, ROWS: tl.constexpr, QP: tl.constexpr,
    CP: tl.constexpr, HAS_WINDOW: tl.constexpr,
):  # fmt: skip
    """The rest of O and P of a cell, one column after the other, from the last.

    They are 0 where g and g' are 0: otherwise they could be infinite there.
    """
    C: tl.constexpr = Q * S
    CELL: tl.constexpr = C * C * T * T
    POPPED: tl.constexpr = C * Q * T * T
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    column = row + span
    transitions += sequence * length * (C * (2 * C + Q))
    g += sequence * num_cells * CELL
    outer += sequence * num_cells * CELL
    popped += sequence * num_cells * POPPED
    of_popped += sequence * num_cells * POPPED
    exponents += sequence * num_cells
    alpha += sequence * num_tiles * (T * C)
    alpha_exponents += sequence * num_tiles
    beta += sequence * length * C * width
    derivatives += sequence * num_tiles * (T * C)
    here = cell_number(row, column, num_tiles)
    outer_here, of_popped_here = outer + here * CELL, of_popped + here * POPPED
    g_here, popped_here = g + here * CELL, popped + here * POPPED
    above, below = row, column  # the numbers of the diagonal cells
    exponent = tl.load(exponents + here)
    after_shift = exponent * 0
    after = here
    is_followed = (column + 1 < num_tiles) & (span + 1 < bands)
    if is_followed:
        after = cell_number(row, column + 1, num_tiles)
        after_shift = exponent - tl.load(exponents + after)
    seed_shift = exponent + tl.load(alpha_exponents + row) - tl.load(alpha_exponents + column)

    m, j, r, y = tl.arange(0, ROWS), tl.arange(0, TQ), tl.arange(0, QP), tl.arange(0, CP)
    x, i, k = m // T, m % T, j // Q
    is_row, is_column = m < C * T, j < T * Q
    of_row = row_offset(m, Q, S, T)
    of_popped_row = popped_offset(m, Q, S, T)
    of_top = (y % S) * (T * T * Q) + y // S
    weight_row = row * T + i - first_weight(column, bands, T, HAS_WINDOW)
    alpha_here = tl.load(alpha + (row * T + i) * C + x, mask=is_row, other=0.0) * power_of_two(seed_shift)
    for rest in range(T):
        t = T - 1 - rest
        now = column * T + t  # the coordinate
        exists = (now >= 2) & (now <= length + 1)
        states = tl.where(exists, Q, 0)
        is_before_next = exists & (now <= length) & ((rest > 0) | is_followed)
        tops_next, states_next = tl.where(is_before_next, C, 0), tl.where(is_before_next, Q, 0)
        is_past = is_row & (row * T + i < now) & (now - row * T - i <= window)
        # O and P of the next column, at [row][top] and [row][state]
        next_outer, next_popped = outer_here + (t + 1) * Q, of_popped_here + (t + 1) * Q
        shift = exponent * 0
        if rest == 0:
            next_outer, next_popped = outer + after * CELL, of_popped + after * POPPED
            shift = after_shift
        replaced = tl.load(
            next_outer + of_row[:, None] + of_top[None, :], mask=is_row[:, None] & (y < tops_next)[None, :], other=0.0
        ) * power_of_two(shift)  # fmt: skip
        is_popped = is_row & (row * T + i > 0)
        next_pops = tl.load(
            next_popped + of_popped_row[:, None] + r[None, :],
            mask=is_popped[:, None] & (r < states_next)[None, :], other=0.0,
        ) * power_of_two(shift)  # fmt: skip
        step = transitions + (now - 1) * (C * (2 * C + Q))
        # O, at [row][r] for each symbol: from the readings, far pops, the next column, and pops of later columns
        for s in range(S):
            top = r * S + s
            is_element = is_past[:, None] & (r < states)[None, :]
            seed = tl.load(
                beta + (tl.cast(now - 2, tl.int64) * C + top)[None, :] * width + weight_row[:, None],
                mask=is_element, other=0.0,
            )  # fmt: skip
            seed += tl.load(derivatives + now * C + top, mask=r < states, other=0.0)[None, :]
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
                popped + below * POPPED + s * (T * Q * T * Q) + (t * Q + r)[None, :] * (T * Q) + j[:, None],
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
            left = tl.load(g + above * CELL + of_symbol + j[None, :], mask=is_left, other=0.0)
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
