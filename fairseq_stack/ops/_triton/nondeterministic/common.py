"""What the kernels share: powers of two, and where numbers lie in memory."""

from __future__ import annotations

import triton
import triton.language as tl

from .sizes import Inner

LARGEST_SHIFT = tl.constexpr(200)
"""Cells are multiplied by powers of two; larger exponents than this, or lower ones than its negative, are not exact."""
LARGEST_MANTISSA = tl.constexpr(2.0**400)
"""Mantissas are exact if they are 0 or between the inverse of this and this."""


@triton.jit
def power_of_two(exponent):
    """2^exponent, for integers; between 2^-1022 and 2^1023."""
    bounded = tl.minimum(tl.maximum(exponent, -1022), 1023).to(tl.int64)
    return ((bounded + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def exponent_of(x):
    """floor(log2 x), and 0 for 0."""
    exponent = ((x.to(tl.int64, bitcast=True) >> 52) & 2047) - 1023
    return tl.where(x > 0, exponent, 0).to(tl.int32)


@triton.jit
def of_sequence(inner, cells, sequence, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr):
    """What belongs to a sequence, whose number has 64 bits."""
    C: tl.constexpr = Q * S
    return Inner(
        inner.weights + sequence * cells.length * C * cells.width,
        inner.transitions + sequence * cells.length * (C * (2 * C + Q)),
        inner.g + sequence * cells.cells * (C * C * T * T),
        inner.popped + sequence * cells.cells * (C * Q * T * T),
        inner.exponents + sequence * cells.cells,
        inner.alpha + sequence * cells.tiles * (T * C),
        inner.alpha_exponents + sequence * cells.tiles,
        inner.inexact + sequence,
    )


@triton.jit
def cell_number(row, column, cells):
    """The number of the cell (I, J), I <= J: diagonal after diagonal, so that the cells of a window come first.

    It has 64 bits, as what is in all cells of a long sequence may be more than 2^31 numbers.
    """
    span = tl.cast(column - row, tl.int64)
    return span * cells.tiles - span * (span - 1) // 2 + row


@triton.jit
def first_weight(column, cells, T: tl.constexpr):
    """The coordinate of the row whose weight is the first of W_t, for the times of a tile."""
    return (column - cells.bands + 1) * T * cells.is_limited


@triton.jit
def row_offset(m, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr):
    """Where the row (x, i) of a cell of ``g`` begins, at its first symbol, for m = x T + i."""
    return (m // T) * (S * T * T * Q) + (m % T) * (T * Q)


@triton.jit
def popped_offset(m, Q: tl.constexpr, S: tl.constexpr, T: tl.constexpr):
    """Where the row (k, u) of a cell of ``popped`` begins, for m = (u S + s) T + k."""
    x = m // T
    return (x % S) * (T * Q * T * Q) + (m % T) * (Q * T * Q) + (x // S) * (T * Q)


@triton.jit
def is_shift_inexact(exponent):
    """Whether a power of two is so large or small that products with it may leave the range of float64."""
    return (exponent > LARGEST_SHIFT) | (exponent < -LARGEST_SHIFT)


@triton.jit
def is_inexact(x):
    """Whether numbers that are not negative are so large or small that products of them may leave the range."""
    return ((x > 0) & (x < 1 / LARGEST_MANTISSA)) | ~(x <= LARGEST_MANTISSA)


@triton.jit
def product(a, b):
    """The product of two matrices, whose sides are 16 or more."""
    return tl.dot(a, b, input_precision="ieee", out_dtype=tl.float64)
