"""(a) to (d) of ``docs/algorithm.md`` for one step of an incremental state; names as in ``_columns.py``.

Row 0..t of column t stands for i = -1..t-1. Exponents are integers in float64; a zero has the exponent ``DEAD``. A
column of gamma lies at [s][r][row][x], with strides.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .common import exponent_of, power_of_two

DEAD = tl.constexpr(-1e9)
ALIVE = tl.constexpr(-5e8)
"""Exponents below this are of zeros."""


@triton.jit
def _power(exponent):
    """2^exponent, at most 2^1000; 0 if it is less than 2^-1022."""
    bounded = tl.minimum(tl.maximum(exponent, -1022.0), 1000.0).to(tl.int32)
    return tl.where(exponent < -1022, 0.0, power_of_two(bounded))


@triton.jit
def _smallest(x):
    """The numbers except 0, and 1."""
    return tl.where((x > 0) & (x < 1), x, 1.0)


@triton.jit
def weigh(
    logits, transitions, ranges, masked, marks, C: tl.constexpr, WIDTH: tl.constexpr, WP: tl.constexpr
):  # fmt: skip
    """Delta_t, and the spread and the mark of its log weights; one program a sequence."""
    sequence = tl.program_id(0).to(tl.int64)
    logits += sequence * (C * WIDTH)
    j = tl.arange(0, WP)
    is_weight = j < C * WIDTH
    x = tl.load(logits + j, mask=is_weight, other=0.0).to(tl.float64)
    is_defined = x < float("inf")
    largest = tl.max(tl.where(is_defined & is_weight, x, -float("inf")), 0)
    # What is NaN or inf becomes the largest.
    relative = tl.where(is_defined & is_weight, x - tl.where(largest == -float("inf"), 0.0, largest), 0.0)
    is_masked = relative == -float("inf")
    tl.store(transitions + sequence * (C * WIDTH) + j, tl.exp(relative), mask=is_weight)
    tl.store(ranges + sequence, -tl.min(tl.where(is_masked, 0.0, relative), 0))
    tl.store(masked + sequence, tl.max(is_masked.to(tl.int32), 0) > 0)
    is_undefined = tl.max((is_weight & ~is_defined).to(tl.int32), 0) > 0
    tl.store(marks + sequence, tl.where(is_undefined, float("nan"), 0.0))


@triton.jit
def move(
    transitions, last, past_exponents, past_alpha, gamma, sums, lowest, popped, popped_exponents, smallest, steps,
    last_batch, last_symbol, last_state, past_batch, past_row, gamma_batch, gamma_symbol, gamma_state,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, QP: tl.constexpr,
):  # fmt: skip
    """The products with Delta_t in (a) and (b) (Eq. 24 and Eq. 25), and the pushes; one program a row of column t."""
    C: tl.constexpr = Q * S
    WIDTH: tl.constexpr = 2 * C + Q
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    last_symbol, gamma_symbol = tl.cast(last_symbol, tl.int64), tl.cast(gamma_symbol, tl.int64)
    transitions += sequence * (C * WIDTH)
    sums += sequence * (steps + 1)
    lowest += sequence * (steps + 1)
    smallest += sequence * (steps + 1)
    x, y, r = tl.arange(0, CP), tl.arange(0, CP), tl.arange(0, QP)
    is_row = row < steps
    configurations = tl.where(is_row, C, 0)  # the interpreter cannot broadcast a Boolean
    exponent = tl.load(past_exponents + sequence * past_batch + row * past_row, mask=is_row, other=0.0)
    moved = tl.zeros((CP, CP), dtype=tl.float64)
    pops = tl.zeros((CP, QP), dtype=tl.float64)
    last += sequence * last_batch + row * C
    for w in range(C):
        before = tl.load(last + (w % S) * last_symbol + (w // S) * last_state + x, mask=x < configurations, other=0.0)
        replace = tl.load(transitions + w * WIDTH + C + y, mask=y < C, other=0.0)
        pop = tl.load(transitions + w * WIDTH + 2 * C + r, mask=r < Q, other=0.0)
        moved += before[:, None] * replace[None, :]
        pops += before[:, None] * pop[None, :]
    if row == steps:
        occurs = tl.load(past_alpha + (sequence * (steps + 1) + steps) * C + x, mask=x < C, other=0.0) > 0
        moved = tl.load(
            transitions + x[:, None] * WIDTH + y[None, :], mask=occurs[:, None] & (y < C)[None, :], other=0.0
        )
    at = gamma + sequence * gamma_batch + row * C + (y % S)[None, :] * gamma_symbol + (y // S)[None, :] * gamma_state
    tl.store(at + x[:, None], moved, mask=(x < C)[:, None] & (y < C)[None, :])
    tl.store(sums + row, exponent)
    is_summand = (row < steps - 1) & (exponent > ALIVE)
    tl.store(lowest + row, tl.where(is_summand, exponent, 1e9))
    least = tl.full((), 1.0, dtype=tl.float64)
    if (row > 0) & is_row:
        largest = tl.max(tl.max(pops, 1), 0)
        shift = exponent_of(largest)
        pops = pops * power_of_two(-shift)
        columns = steps - 1
        target = popped + (sequence * S + x % S)[:, None] * (Q * columns * Q) + r[None, :] * (columns * Q)
        tl.store(target + (row - 1) * Q + (x // S)[:, None], pops, mask=(x < C)[:, None] & (r < Q)[None, :])
        tl.store(popped_exponents + sequence * columns + row - 1, tl.where(largest > 0, exponent + shift, DEAD))
        least = tl.min(tl.min(_smallest(pops), 1), 0)
    tl.store(smallest + row, least)


@triton.jit
def add_pops(
    gamma, sums, lowest, popped, popped_exponents, blocks, block_exponents, steps, begin, columns,
    gamma_batch, gamma_symbol, gamma_state, block_batch, block_symbol, block_column, block_state,
    exponent_batch, exponent_row, exponent_column,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, QP: tl.constexpr, SP: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The pops of (a) (Eq. 24) to the columns of a panel, from ``begin`` on; one program a row of column t."""
    C: tl.constexpr = Q * S
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    gamma_symbol, block_symbol = tl.cast(gamma_symbol, tl.int64), tl.cast(block_symbol, tl.int64)
    block_column = tl.cast(block_column, tl.int64)
    sums += sequence * (steps + 1) + row
    lowest += sequence * (steps + 1) + row
    popped += sequence * S * (Q * (steps - 1) * Q)
    popped_exponents += sequence * (steps - 1) + begin
    blocks += sequence * block_batch + row * C
    block_exponents += sequence * exponent_batch + row * exponent_row
    k, x, s, r = tl.arange(0, PART), tl.arange(0, CP), tl.arange(0, SP), tl.arange(0, QP)
    first = tl.maximum(row - begin, 0)
    before = tl.load(sums)
    exponent, deepest = before, tl.load(lowest)
    for start in range(first, columns, PART):
        is_column = start + k < columns
        summands = tl.load(block_exponents + (start + k) * exponent_column, mask=is_column, other=DEAD)
        summands += tl.load(popped_exponents + start + k, mask=is_column, other=DEAD)
        exponent = tl.maximum(exponent, tl.max(summands, 0))
        deepest = tl.minimum(deepest, tl.min(tl.where(summands > ALIVE, summands, 1e9), 0))
    at = gamma + sequence * gamma_batch + row * C + s[None, :, None] * gamma_symbol + r[None, None, :] * gamma_state
    at += x[:, None, None]
    is_top = (s < S)[None, :, None] & (r < Q)[None, None, :]
    is_element = (x < C)[:, None, None] & is_top
    totals = tl.load(at, mask=is_element, other=0.0) * _power(before - exponent)
    for start in range(first, columns, PART):
        is_column = start + k < columns
        summands = tl.load(block_exponents + (start + k) * exponent_column, mask=is_column, other=DEAD)
        summands += tl.load(popped_exponents + start + k, mask=is_column, other=DEAD)
        factors = tl.where(summands > ALIVE, _power(summands - exponent), 0.0)
        for u in range(Q):
            left = tl.load(
                blocks + ((start + k) * block_column)[:, None, None] + u * block_state
                + s[None, None, :] * block_symbol + x[None, :, None],
                mask=is_column[:, None, None] & (x < C)[None, :, None] & (s < S)[None, None, :], other=0.0,
            )  # fmt: skip
            right = tl.load(
                popped + (s[None, :, None] * Q + r[None, None, :]) * ((steps - 1) * Q)
                + ((begin + start + k) * Q)[:, None, None] + u,
                mask=is_column[:, None, None] & is_top, other=0.0,
            )  # fmt: skip
            right = right * factors[:, None, None]
            totals += tl.sum(left[:, :, :, None] * right[:, None, :, :], 0)
    tl.debug_barrier()
    tl.store(at, totals, mask=is_element)
    tl.store(sums, exponent)
    tl.store(lowest, deepest)


@triton.jit
def finish(
    gamma, exponents, sums, smallest, past_alpha, alpha_exponents, numerators, keys, steps,
    gamma_batch, gamma_symbol, gamma_state, exponent_batch, exponent_row,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, FORGETS: tl.constexpr,
):  # fmt: skip
    """Mantissas and exponents of a row of column t, and its numerators of W_t, with their exponent; (c) and (d)."""
    C: tl.constexpr = Q * S
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    gamma_symbol = tl.cast(gamma_symbol, tl.int64)
    at_row = sequence * (steps + 1) + row
    x, y = tl.arange(0, CP), tl.arange(0, CP)
    at = gamma + sequence * gamma_batch + row * C + (y % S)[None, :] * gamma_symbol + (y // S)[None, :] * gamma_state
    at += x[:, None]
    is_element = (x < C)[:, None] & (y < C)[None, :]
    blocks = tl.load(at, mask=is_element, other=0.0)
    if FORGETS:  # a window of one step: the row of column t - 1 is not remembered
        blocks = tl.where(row == 0, 0.0, blocks)
    largest = tl.max(tl.max(blocks, 1), 0)
    shift = exponent_of(largest)
    blocks = blocks * power_of_two(-shift)
    tl.debug_barrier()
    tl.store(at, blocks, mask=is_element)
    exponent = tl.where(largest > 0, tl.load(sums + at_row) + shift, DEAD)
    tl.store(exponents + sequence * exponent_batch + row * exponent_row, exponent)
    least = tl.min(tl.min(_smallest(blocks), 1), 0)
    tl.store(smallest + at_row, tl.minimum(tl.load(smallest + at_row), least))
    alpha = tl.load(past_alpha + at_row * C + x, mask=x < C, other=0.0)
    sums_of_row = tl.sum(alpha[:, None] * blocks, 0)
    tl.store(numerators + at_row * C + y, sums_of_row, mask=y < C)
    most = tl.max(sums_of_row, 0)
    exponent += tl.load(alpha_exponents + at_row)
    tl.store(keys + at_row * 2, exponent)
    tl.store(keys + at_row * 2 + 1, tl.where(most > 0, exponent + exponent_of(most), DEAD))


@triton.jit
def read(
    numerators, keys, sums, lowest, smallest, alpha, alpha_exponent, deepest, least, is_lost, rows,
    C: tl.constexpr, CP: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """(c) and (d) (Eq. 27 and Eq. 29): W_t in place of its numerators, alpha[t], and how small numbers are.

    One program a sequence.
    """
    sequence = tl.program_id(0).to(tl.int64)
    numerators += sequence * rows * C
    keys += sequence * rows * 2
    sums += sequence * rows
    lowest += sequence * rows
    smallest += sequence * rows
    i, y = tl.arange(0, PART), tl.arange(0, CP)
    exponent = tl.full((), DEAD, dtype=tl.float64)
    depth = tl.full((), 0.0, dtype=tl.float64)
    small = tl.full((), 1.0, dtype=tl.float64)
    for start in range(0, rows, PART):
        row = start + i
        exponent = tl.maximum(exponent, tl.max(tl.load(keys + row * 2 + 1, mask=row < rows, other=DEAD), 0))
        low = tl.load(lowest + row, mask=row < rows, other=1e9)
        depths = tl.where(low < 1e9, low - tl.load(sums + row, mask=row < rows, other=0.0), 0.0)
        depth = tl.minimum(depth, tl.min(depths, 0))
        small = tl.minimum(small, tl.min(tl.load(smallest + row, mask=row < rows, other=1.0), 0))
    totals = tl.zeros((CP,), dtype=tl.float64)
    occurs = tl.zeros((CP,), dtype=tl.int32)
    for start in range(0, rows, PART):
        row = start + i
        is_element = (row < rows)[:, None] & (y < C)[None, :]
        at = numerators + row[:, None] * C + y[None, :]
        sums_of_row = tl.load(at, mask=is_element, other=0.0)
        occurs |= tl.max((sums_of_row > 0).to(tl.int32), 0)
        sums_of_row = sums_of_row * _power(tl.load(keys + row * 2, mask=row < rows, other=0.0) - exponent)[:, None]
        tl.store(at, sums_of_row, mask=is_element)
        totals += tl.sum(sums_of_row, 0)
    tl.debug_barrier()
    total = tl.sum(totals, 0)
    total = tl.where(total == 0, 1.0, total)
    for start in range(0, rows, PART):
        row = start + i
        is_element = (row < rows)[:, None] & (y < C)[None, :]
        at = numerators + row[:, None] * C + y[None, :]
        tl.store(at, tl.load(at, mask=is_element, other=0.0) / total, mask=is_element)
    tl.store(alpha + sequence * C + y, totals, mask=y < C)
    tl.store(alpha_exponent + sequence, exponent)
    tl.store(deepest + sequence, depth)
    tl.store(least + sequence, tl.minimum(small, tl.min(_smallest(totals), 0)))
    tl.store(is_lost + sequence, tl.max(occurs * (totals == 0).to(tl.int32), 0) > 0)
