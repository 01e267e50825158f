"""(a) to (d) of ``docs/algorithm.md`` for one step of an incremental state; names as in ``_columns.py``.

Row 0..t of column t stands for i = -1..t-1. Exponents are integers in float64; a zero has the exponent ``DEAD``.
The records below are arguments of the kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

from .common import exponent_of, power_of_two

DEAD = tl.constexpr(-1e9)
ALIVE = tl.constexpr(-5e8)
"""Exponents below this are of zeros."""


class Blocks(NamedTuple):
    """Columns of gamma, at [sequence][s][column][r][row][x] with these strides."""

    mantissas: Tensor
    batch: int
    symbol: int
    column: int
    state: int


class Exponents(NamedTuple):
    """The exponents of columns, at [sequence][row][column] with these strides."""

    powers: Tensor  # of two; "values" would be an attribute of Triton's tuples
    batch: int
    row: int
    column: int


class Pops(NamedTuple):
    """gamma', as in ``_columns.NewColumn``."""

    popped: Tensor
    exponents: Tensor


class Rows(NamedTuple):
    """What the kernels find out about the rows of column t, (B, t + 1)."""

    sums: Tensor  # the exponents of what is added up in it
    lowest: Tensor  # the lowest exponent of a summand
    smallest: Tensor  # the smallest mantissa except 0


@triton.jit
def _place(blocks, sequence, row, s, r, C: tl.constexpr):
    """Where the first column has a row with the symbols s and the states r."""
    start = blocks.mantissas + sequence * blocks.batch + row * C
    return start + s * tl.cast(blocks.symbol, tl.int64) + r * blocks.state


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
    """Delta_t, and the spread and the mark of its log weights; one program per sequence."""
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
    transitions, last, past_exponents, past_alpha, gamma, rows, pops, steps,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, QP: tl.constexpr,
):  # fmt: skip
    """The products with Delta_t in (a) and (b) (Eq. 24 and Eq. 25), and the pushes; one program per row of column t."""
    C: tl.constexpr = Q * S
    WIDTH: tl.constexpr = 2 * C + Q
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    transitions += sequence * (C * WIDTH)
    at_row = sequence * (steps + 1) + row
    x, y, r = tl.arange(0, CP), tl.arange(0, CP), tl.arange(0, QP)
    is_row = row < steps
    configurations = tl.where(is_row, C, 0)  # the interpreter cannot broadcast a Boolean
    at = past_exponents.powers + sequence * past_exponents.batch + row * past_exponents.row
    exponent = tl.load(at, mask=is_row, other=0.0)
    moved = tl.zeros((CP, CP), dtype=tl.float64)
    popped = tl.zeros((CP, QP), dtype=tl.float64)
    for w in range(C):
        before = tl.load(_place(last, sequence, row, w % S, w // S, C) + x, mask=x < configurations, other=0.0)
        replace = tl.load(transitions + w * WIDTH + C + y, mask=y < C, other=0.0)
        pop = tl.load(transitions + w * WIDTH + 2 * C + r, mask=r < Q, other=0.0)
        moved += before[:, None] * replace[None, :]
        popped += before[:, None] * pop[None, :]
    if row == steps:
        occurs = tl.load(past_alpha + (sequence * (steps + 1) + steps) * C + x, mask=x < C, other=0.0) > 0
        moved = tl.load(
            transitions + x[:, None] * WIDTH + y[None, :], mask=occurs[:, None] & (y < C)[None, :], other=0.0
        )
    at = _place(gamma, sequence, row, (y % S)[None, :], (y // S)[None, :], C)
    tl.store(at + x[:, None], moved, mask=(x < C)[:, None] & (y < C)[None, :])
    tl.store(rows.sums + at_row, exponent)
    is_summand = (row < steps - 1) & (exponent > ALIVE)
    tl.store(rows.lowest + at_row, tl.where(is_summand, exponent, 1e9))
    least = tl.full((), 1.0, dtype=tl.float64)
    if (row > 0) & is_row:
        largest = tl.max(tl.max(popped, 1), 0)
        shift = exponent_of(largest)
        popped = popped * power_of_two(-shift)
        columns = steps - 1
        target = pops.popped + (sequence * S + x % S)[:, None] * (Q * columns * Q) + r[None, :] * (columns * Q)
        tl.store(target + (row - 1) * Q + (x // S)[:, None], popped, mask=(x < C)[:, None] & (r < Q)[None, :])
        tl.store(pops.exponents + sequence * columns + row - 1, tl.where(largest > 0, exponent + shift, DEAD))
        least = tl.min(tl.min(_smallest(popped), 1), 0)
    tl.store(rows.smallest + at_row, least)


@triton.jit
def add_pops(
    gamma, rows, pops, blocks, exponents, steps, begin, columns,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, QP: tl.constexpr, SP: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """The pops of (a) (Eq. 24) to the columns of a panel, from ``begin`` on; one program per row of column t."""
    C: tl.constexpr = Q * S
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    block_column = tl.cast(blocks.column, tl.int64)
    sums, lowest = rows.sums + sequence * (steps + 1) + row, rows.lowest + sequence * (steps + 1) + row
    popped = pops.popped + sequence * S * (Q * (steps - 1) * Q)
    popped_exponents = pops.exponents + sequence * (steps - 1) + begin
    block_exponents = exponents.powers + sequence * exponents.batch + row * exponents.row
    k, x, s, r = tl.arange(0, PART), tl.arange(0, CP), tl.arange(0, SP), tl.arange(0, QP)
    first = tl.maximum(row - begin, 0)
    before = tl.load(sums)
    exponent, deepest = before, tl.load(lowest)
    for start in range(first, columns, PART):
        is_column = start + k < columns
        summands = tl.load(block_exponents + (start + k) * exponents.column, mask=is_column, other=DEAD)
        summands += tl.load(popped_exponents + start + k, mask=is_column, other=DEAD)
        exponent = tl.maximum(exponent, tl.max(summands, 0))
        deepest = tl.minimum(deepest, tl.min(tl.where(summands > ALIVE, summands, 1e9), 0))
    at = _place(gamma, sequence, row, s[None, :, None], r[None, None, :], C) + x[:, None, None]
    is_top = (s < S)[None, :, None] & (r < Q)[None, None, :]
    is_element = (x < C)[:, None, None] & is_top
    totals = tl.load(at, mask=is_element, other=0.0) * _power(before - exponent)
    for start in range(first, columns, PART):
        is_column = start + k < columns
        summands = tl.load(block_exponents + (start + k) * exponents.column, mask=is_column, other=DEAD)
        summands += tl.load(popped_exponents + start + k, mask=is_column, other=DEAD)
        factors = tl.where(summands > ALIVE, _power(summands - exponent), 0.0)
        for u in range(Q):
            left = tl.load(
                _place(blocks, sequence, row, s[None, None, :], u, C)
                + ((start + k) * block_column)[:, None, None] + x[None, :, None],
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
    gamma, exponents, rows, past_alpha, alpha_exponents, numerators, keys, steps,
    Q: tl.constexpr, S: tl.constexpr, CP: tl.constexpr, FORGETS: tl.constexpr,
):  # fmt: skip
    """Mantissas and exponents of a row of column t, and its numerators of W_t, with their exponent; (c) and (d)."""
    C: tl.constexpr = Q * S
    row, sequence = tl.program_id(0), tl.program_id(1).to(tl.int64)
    at_row = sequence * (steps + 1) + row
    x, y = tl.arange(0, CP), tl.arange(0, CP)
    at = _place(gamma, sequence, row, (y % S)[None, :], (y // S)[None, :], C) + x[:, None]
    is_element = (x < C)[:, None] & (y < C)[None, :]
    blocks = tl.load(at, mask=is_element, other=0.0)
    if FORGETS:  # a window of one step: the row of column t - 1 is not remembered
        blocks = tl.where(row == 0, 0.0, blocks)
    largest = tl.max(tl.max(blocks, 1), 0)
    shift = exponent_of(largest)
    blocks = blocks * power_of_two(-shift)
    tl.debug_barrier()
    tl.store(at, blocks, mask=is_element)
    exponent = tl.where(largest > 0, tl.load(rows.sums + at_row) + shift, DEAD)
    tl.store(exponents.powers + sequence * exponents.batch + row * exponents.row, exponent)
    least = tl.min(tl.min(_smallest(blocks), 1), 0)
    tl.store(rows.smallest + at_row, tl.minimum(tl.load(rows.smallest + at_row), least))
    alpha = tl.load(past_alpha + at_row * C + x, mask=x < C, other=0.0)
    sums_of_row = tl.sum(alpha[:, None] * blocks, 0)
    tl.store(numerators + at_row * C + y, sums_of_row, mask=y < C)
    most = tl.max(sums_of_row, 0)
    exponent += tl.load(alpha_exponents + at_row)
    tl.store(keys + at_row * 2, exponent)
    tl.store(keys + at_row * 2 + 1, tl.where(most > 0, exponent + exponent_of(most), DEAD))


@triton.jit
def read(
    numerators, keys, rows, alpha, alpha_exponent, deepest, least, is_lost, count,
    C: tl.constexpr, CP: tl.constexpr, PART: tl.constexpr,
):  # fmt: skip
    """(c) and (d) (Eq. 27 and Eq. 29): W_t in place of its numerators, alpha[t], and how small numbers are.

    One program per sequence.
    """
    sequence = tl.program_id(0).to(tl.int64)
    numerators += sequence * count * C
    keys += sequence * count * 2
    sums, lowest = rows.sums + sequence * count, rows.lowest + sequence * count
    smallest = rows.smallest + sequence * count
    i, y = tl.arange(0, PART), tl.arange(0, CP)
    exponent = tl.full((), DEAD, dtype=tl.float64)
    depth = tl.full((), 0.0, dtype=tl.float64)
    small = tl.full((), 1.0, dtype=tl.float64)
    for start in range(0, count, PART):
        row = start + i
        exponent = tl.maximum(exponent, tl.max(tl.load(keys + row * 2 + 1, mask=row < count, other=DEAD), 0))
        low = tl.load(lowest + row, mask=row < count, other=1e9)
        depths = tl.where(low < 1e9, low - tl.load(sums + row, mask=row < count, other=0.0), 0.0)
        depth = tl.minimum(depth, tl.min(depths, 0))
        small = tl.minimum(small, tl.min(tl.load(smallest + row, mask=row < count, other=1.0), 0))
    totals = tl.zeros((CP,), dtype=tl.float64)
    occurs = tl.zeros((CP,), dtype=tl.int32)
    for start in range(0, count, PART):
        row = start + i
        is_element = (row < count)[:, None] & (y < C)[None, :]
        at = numerators + row[:, None] * C + y[None, :]
        sums_of_row = tl.load(at, mask=is_element, other=0.0)
        occurs |= tl.max((sums_of_row > 0).to(tl.int32), 0)
        sums_of_row = sums_of_row * _power(tl.load(keys + row * 2, mask=row < count, other=0.0) - exponent)[:, None]
        tl.store(at, sums_of_row, mask=is_element)
        totals += tl.sum(sums_of_row, 0)
    tl.debug_barrier()
    total = tl.sum(totals, 0)
    total = tl.where(total == 0, 1.0, total)
    for start in range(0, count, PART):
        row = start + i
        is_element = (row < count)[:, None] & (y < C)[None, :]
        at = numerators + row[:, None] * C + y[None, :]
        tl.store(at, tl.load(at, mask=is_element, other=0.0) / total, mask=is_element)
    tl.store(alpha + sequence * C + y, totals, mask=y < C)
    tl.store(alpha_exponent + sequence, exponent)
    tl.store(deepest + sequence, depth)
    tl.store(least + sequence, tl.minimum(small, tl.min(_smallest(totals), 0)))
    tl.store(is_lost + sequence, tl.max(occurs * (totals == 0).to(tl.int32), 0) > 0)
