"""One step of the inner weights in real numbers, for the incremental state; and what the parallel stack shares.

Equations with letters are in ``docs/algorithm.md``, equations with numbers in the paper.

Notation: Q states, S stack symbols, C = Q * S configurations (q, x) in row-major order, m vector size. Column
t of the inner weights is gamma[i -> t][q,x -> r,y] for i = -1..t-1, a tensor (B, t + 1, C, C) at index
[b, i + 1, qx, ry]. For the pop rule, columns k..k+K are kept as *blocks* (B, S, K, Q, rows, C) at index
[b, y, k, u, i + 1, qx], so that the sum over k and u of Eq. 24 is one matrix product.

Two facts make real numbers sufficient. Multiplying all transition weights of a step by a constant leaves the readings
unchanged, so each step's weights are divided by their maximum. And the vector on top after i -> t is always
the one pushed at step i + 1, so that zeta[i -> t] = gamma[i -> t] v_{i+1}, and readings average the pushed
vectors:

    r_t[r, y] = sum_i W_t[i][r, y] v_{i+1}
    W_t[i][r, y] = sum_{q, x} alpha[i][q, x] gamma[i -> t][q,x -> r,y] / sum_{r, y} alpha[t][r, y]

*Exponents*: where the inner weights could leave the range of float64, each block (i, t) is kept as a
mantissa, whose largest element is in [1, 2), and an integer exponent, and so are gamma' and alpha. Exponents
are integers in float64 tensors; a block of zeros has the exponent ``DEAD``. They take no part in
differentiation: each power of two that a mantissa is divided by is multiplied in again later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._log_weights import Spread, defined, relative_to_largest, spread_of

DEAD = -1e9
_LARGEST_EXPONENT = 1000.0
LARGEST = 2.0**1000  # of a derivative: sums of its products with weights, which are below 2, are numbers


class Blocks(NamedTuple):
    """Neighbouring columns of gamma, with all rows from the first that is remembered to the last that is not 0."""

    mantissas: Tensor  # (B, S, K, Q, rows, C)
    exponents: Tensor  # (B, rows, K)


class Past(NamedTuple):
    """What step t needs of the steps before. Numbers count from the first row and column that are remembered."""

    newest: Tensor  # column t - 1 as a block, (B, S, Q, t, C)
    exponents: Tensor  # its exponents, (B, t)
    blocks: Sequence[Blocks]  # of the columns 0..t-2
    alpha: Tensor  # alpha[i], i = -1..t-1, (B, t + 1, C)
    alpha_exponents: Tensor  # (B, t + 1)

    def last(self) -> Tensor:
        """Column t - 1, (B, t, C, C)."""
        return from_block(self.newest)


class Top(NamedTuple):
    """(c) and (d) (Eq. 27 and Eq. 29) at step t."""

    weights: Tensor  # W_t, (B, t + 1, C)
    alpha: Tensor  # alpha[t] without its exponent, (B, C)
    alpha_exponent: Tensor  # (B,)
    is_lost: Tensor  # (B,), whether an element of alpha[t] is 0 only because it is so small relative to the others


class NewColumn(NamedTuple):
    """Column t, and what else a hand-written backward pass needs."""

    gamma: Tensor  # (B, t + 1, C, C)
    exponents: Tensor  # (B, t + 1)
    sums: Tensor  # the exponents of what was added up in it, (B, t + 1)
    popped: Tensor  # gamma'[k -> t][u,y -> r] at index [(b, y), r, (k, u)]
    popped_exponents: Tensor  # (B, t - 1)
    deepest: Tensor  # (B,), the lowest exponent of a summand, relative to its sum's


class Step(NamedTuple):
    """Step t."""

    transitions: Tensor  # Delta_t, (B, C, 2 C + Q), up to a positive factor
    column: NewColumn
    top: Top
    mark: Tensor  # (B,), NaN where a log weight is NaN or inf, otherwise 0
    spread: Spread
    lowest: Tensor  # (B,), the logarithm to base 2 of the smallest mantissa except 0; 0 at most


def power_of_two(exponents: Tensor) -> Tensor:
    """2^exponents, kept finite where it can only be a factor of 0."""
    return torch.exp2(exponents.clamp(max=_LARGEST_EXPONENT))


def times(x: Tensor, factors: Tensor) -> Tensor:
    """``x`` (B, K, ...) times ``factors`` (B, K)."""
    return x * factors.reshape(factors.shape + (1,) * (x.dim() - 2))


def first_alpha(start: Tensor) -> tuple[Tensor, Tensor, Spread]:
    """alpha[0] from log weights (B, C) of the configurations that runs start in; and a mark and their spread, as in
    ``Step``.
    """
    ordinary, mark = defined(start[:, None])
    relative = relative_to_largest(ordinary)
    return torch.exp(relative)[:, 0], mark, spread_of(relative)


def step(past: Past, logits: Tensor, window: int | None) -> Step:
    """(a)-(d) for one step.

    Args:
        past: the columns before it.
        logits: log weights, (B, C, 2 C + Q), in float64.
        window: D, or None for unlimited memory.
    """
    logits, mark = defined(logits)
    logits = relative_to_largest(logits)
    transitions = torch.exp(logits)
    column = next_column(past, transitions)
    if window == 1:  # next_column needs a column before it, but nothing of it is remembered
        gamma, exponents = (
            pad(column.gamma[:, 1:], (0, 0, 0, 0, 1, 0)),
            pad(column.exponents[:, 1:], (1, 0), value=DEAD),
        )
        column = column._replace(gamma=gamma, exponents=exponents)
    top = read_top(column.gamma, past.alpha, column.exponents + past.alpha_exponents)
    num_symbols = past.newest.shape[1]
    popped = lowest_power(column.popped).view(-1, num_symbols).amin(1)
    lowest = torch.stack([lowest_power(column.gamma), popped, lowest_power(top.alpha)]).amin(0)
    return Step(transitions, column, top, mark, spread_of(logits), lowest)


def next_column(past: Past, transitions: Tensor) -> NewColumn:
    """(a) and (b) (Eq. 24 and Eq. 25), written as (e): column t from columns 0..t-1.

    Pushes onto a configuration that cannot be on top after step t - 1 are left out: no run contains them, and their
    inner weights could outgrow all others.

    Args:
        past: the columns before it.
        transitions: Delta_t, (B, C, 2 C + Q), up to a positive factor.
    """
    last = past.last()
    batch_size, steps, size, _ = last.shape
    pushed, replaced, popped = _move(last, transitions, occurs=past.alpha[:, -1] > 0)
    popped, popped_exponents = normalise(popped, past.exponents[:, 1:])
    # Exponents of what is added up in block (i, t): for each k, at index [b, i + 1, k], and then altogether.
    of_columns = popped_exponents.split([blocks.exponents.shape[2] for blocks in past.blocks], 1)
    summands = [
        blocks.exponents + of_popped[:, None] for blocks, of_popped in zip(past.blocks, of_columns, strict=True)
    ]
    sums = past.exponents[:, :-1]
    for x in summands:
        sums = torch.maximum(sums, pad(x.amax(2), (0, steps - 1 - x.shape[1]), value=-torch.inf))
    parts = [past.exponents[:, :-1, None], *summands]
    depths = [torch.where(x > DEAD / 2, x - sums[:, : x.shape[1], None], 0).flatten(1) for x in parts]
    deepest = pad(torch.cat(depths, 1), (0, 1)).amin(1)
    popped = _as_popped(popped)
    pops = popped.new_zeros(*popped.shape[:2], (steps - 1) * size)
    for popped_part, matrix, _ in popped_blocks(popped, popped_exponents, past.blocks, sums):
        product = torch.bmm(popped_part, matrix)
        pops = pops + pad(product, (0, pops.shape[2] - product.shape[2]))
    pops = from_block(pops.view(batch_size, size // pops.shape[1], pops.shape[1], steps - 1, size))
    kept = times(replaced[:, :-1], power_of_two(past.exponents[:, :-1] - sums))
    gamma = torch.cat([kept + pops, replaced[:, -1:], pushed], 1)
    sums = torch.cat([sums, past.exponents[:, -1:], torch.zeros_like(past.exponents[:, -1:])], 1)
    return NewColumn(*normalise(gamma, sums), sums, popped, popped_exponents, deepest)


def popped_blocks(
    popped: Tensor, exponents: Tensor, blocks: Sequence[Blocks], sums: Tensor
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The factors of the sum over k and u in (a) (Eq. 24), with the columns k of some blocks at a time.

    Args:
        popped: gamma'[k -> t][u,y -> r] at index [(b, y), r, (k, u)].
        exponents: its exponents, (B, t - 1).
        blocks: the columns k.
        sums: the exponents of the sum, (B, t - 1).

    Yields:
        Their part of ``popped``; the blocks scaled to ``sums``, as matrices (B * S, K Q, rows * C); and the factors
        that they were scaled by, (B, 1, K, 1, rows, 1).
    """
    begin, num_states = 0, popped.shape[1]
    for mantissas, of_blocks in blocks:
        end, rows = begin + of_blocks.shape[2], of_blocks.shape[1]
        factors = power_of_two(of_blocks + exponents[:, None, begin:end] - sums[:, :rows, None])
        factors = factors.transpose(1, 2)[:, None, :, None, :, None]
        matrix = (mantissas * factors).flatten(4).flatten(2, 3).flatten(0, 1)
        yield popped[:, :, begin * num_states : end * num_states], matrix, factors
        begin = end


def read_top(gamma: Tensor, alpha: Tensor, exponents: Tensor) -> Top:
    """(c) and (d) (Eq. 27 and Eq. 29) for column t.

    Args:
        gamma: column t, (B, t + 1, C, C).
        alpha: alpha[i], i = -1..t-1, (B, t + 1, C).
        exponents: of alpha[i] gamma[i -> t], (B, t + 1).
    """
    numerators = (alpha[..., None] * gamma).sum(2)
    # The exponent of the largest product that is not 0, so that not all of them can become 0 here.
    exponent = (exponents + exponents_of(numerators.amax(2))).amax(1)
    occurs = (numerators > 0).any(1)
    numerators = times(numerators, power_of_two(exponents - exponent[:, None]))
    new_alpha = numerators.sum(1)
    is_lost = (occurs & (new_alpha == 0)).any(1)
    total = new_alpha.sum(1)
    total = torch.where(total == 0, 1, total)
    return Top(numerators / total[:, None, None], new_alpha, exponent, is_lost)


def as_block(gamma: Tensor, num_states: int) -> Tensor:
    """Column k (B, rows, C, C) laid out as a block, (B, S, Q, rows, C) at index [b, y, u, i + 1, qx]."""
    return gamma.unflatten(3, (num_states, -1)).permute(0, 4, 3, 1, 2)


def from_block(block: Tensor) -> Tensor:
    """The inverse of ``as_block``."""
    return block.permute(0, 3, 4, 2, 1).flatten(3)


def _as_popped(popped: Tensor) -> Tensor:
    """gamma'[k -> t][u,y -> r] at [b, k, uy, r] to [(b, y), r, (k, u)]."""
    batch_size, columns, size, num_states = popped.shape
    num_symbols = size // num_states
    popped = popped.reshape(batch_size, columns, num_states, num_symbols, num_states).permute(0, 3, 4, 1, 2)
    return popped.reshape(batch_size * num_symbols, num_states, columns * num_states)


def _move(last: Tensor, transitions: Tensor, occurs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The products with Delta_t in (a) and (b) (Eq. 24 and Eq. 25), of column t - 1 (B, t, C, C).

    Returns:
        Pushes (B, 1, C, C), replacements (B, t, C, C), and gamma'[k -> t] (B, t - 1, C, Q) at [b, k, uy, r].
    """
    batch_size, steps, size, _ = last.shape
    moved = last.reshape(batch_size, steps * size, size) @ transitions[:, :, size:]
    moved = moved.view(batch_size, steps, size, transitions.shape[2] - size)
    pushed = transitions[:, None, :, :size] * occurs[:, None, :, None]
    return pushed, moved[..., :size], moved[:, 1:, :, size:]


def normalise(blocks: Tensor, exponents: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks (B, K, rows, columns), exponents (B, K): make the largest element of each block be in [1, 2)."""
    shifts = exponents_of(blocks.amax((2, 3)))
    alive = shifts > DEAD
    mantissas = times(blocks, torch.exp2(torch.where(alive, -shifts, 0)))
    return mantissas, torch.where(alive, exponents + shifts, DEAD)


def bounded(gradient: Tensor) -> Tensor:
    """A derivative that is a number, and from which numbers can be computed."""
    return gradient.nan_to_num(0, 0, 0).clamp(-LARGEST, LARGEST)


def exponents_of(x: Tensor) -> Tensor:
    """floor(log2 x), and ``DEAD`` for 0."""
    return torch.where(x == 0, DEAD, torch.log2(x).floor().clamp_min(-_LARGEST_EXPONENT))


def lowest_power(x: Tensor) -> Tensor:
    """The logarithm to base 2 of the smallest number of each batch row of mantissas (B, ...) except 0; 0 at most."""
    x = x.flatten(1)
    return pad(torch.where(x > 0, x, 1), (0, 1), value=1).amin(1).log2()
