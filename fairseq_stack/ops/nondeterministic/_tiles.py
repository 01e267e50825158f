"""The inner weights in square tiles of T rows and T columns, laid out for matrix products.

Notation as in ``_columns.py``, except that (q, x) has the number x * Q + q here, so that configurations with the same
symbol are neighbours. ``nondeterministic_stack_pytorch`` renumbers its arguments and its results. The letters of an
axis stand in the order of the numbers: qx there, xq here.

*Point* p = 0..n+1 stands for row i = p - 1 and for column t = p - 1. Points are grouped into K tiles of T; those after
the last have transitions of weight 0. *Diagonal* d holds the tiles (I, J) of rows I and columns J = I + d for
I = 0..K-d-1, stacked along the first axis, so that one batched product computes with all of them:

    gamma[d][I, b, y, t, r, xq, i] = gamma[i -> t][q,x -> r,y]        (K - d, B, S, T, Q, C, T)
    popped[d][I, b, y, t, r, k, u] = gamma'[k -> t][u,y -> r]         (K - d, B, S, T, Q, T, Q)

As matrices with rows (t, r), they turn the sum over pops in Eq. 24, which is (e) of ``docs/algorithm.md``, into a sum
of matrix products: to gamma(I, J), the k in tile M add popped(M, J) @ gamma(I, M) for each b and y.

*Exponents*: each tile is a mantissa times 2 to the power of an exponent, one for each tile and b.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from ._columns import power_of_two, times


class Tiles(NamedTuple):
    """The inner weights of a batch, as far as they are known: lists by diagonal.

    Attributes:
        transitions: Delta_t up to a positive factor for each t, (K, B, T, C, 2 C + Q).
        gamma: mantissas of gamma.
        popped: mantissas of gamma'.
        exponents: of ``gamma`` and ``popped``, (K - d, B).
    """

    transitions: Tensor
    gamma: list[Tensor]
    popped: list[Tensor]
    exponents: list[Tensor]

    @classmethod
    def from_batch(cls, tensors: Sequence[Tensor]) -> Tiles:
        """The inverse of ``by_batch``."""
        transitions, *lists = (x.transpose(0, 1) for x in tensors)
        count = len(transitions)
        return cls(transitions, *(lists[i * count : (i + 1) * count] for i in range(3)))

    def by_batch(self) -> list[Tensor]:
        """All tensors, with the batch as the first axis."""
        lists = self.gamma, self.popped, self.exponents
        return [x.transpose(0, 1) for x in (self.transitions, *itertools.chain(*lists))]

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int]:
        """K, B, S, T, Q, C."""
        num_tiles, batch_size, tile_size, size, targets = self.transitions.shape
        num_states = targets - 2 * size
        return num_tiles, batch_size, size // num_states, tile_size, num_states, size

    def empty_gamma(self, d: int) -> Tensor:
        num_tiles, batch_size, num_symbols, tile_size, num_states, size = self.sizes
        shape = num_tiles - d, batch_size, num_symbols, tile_size, num_states, size, tile_size
        return self.transitions.new_empty(shape)

    def empty_popped(self, d: int) -> Tensor:
        num_tiles, batch_size, num_symbols, tile_size, num_states, _ = self.sizes
        shape = num_tiles - d, batch_size, num_symbols, tile_size, num_states, tile_size, num_states
        return self.transitions.new_empty(shape)

    def split_exponents(self, d: int, e: int) -> Tensor:
        """The exponents of popped(M, J) @ gamma(I, M) for all I, with M = I + e and J = I + d, (K - d, B)."""
        count = len(self.transitions) - d
        return self.exponents[e][:count] + self.exponents[d - e][e : e + count]

    def split_factors(self, d: int, e: int) -> Tensor:
        """What that product is multiplied by in the mantissa of gamma(I, J)."""
        return power_of_two(self.split_exponents(d, e) - self.exponents[d])

    def moves(self, d: int, tau: int) -> tuple[Tensor, Tensor]:
        """Replacements (.., C, C) and pops (.., C, Q) that lead to column ``tau`` of the tiles of diagonal d.

        They contain the factor by which the exponents of the column before differ.
        """
        size = self.transitions.shape[3]
        transitions = self.transitions[d:, :, tau]
        replace, pop = transitions[..., size : 2 * size], transitions[..., 2 * size :]
        if tau == 0 and d > 0:
            factors = power_of_two(self.exponents[d - 1][: len(transitions)] - self.exponents[d])
            replace, pop = times(replace, factors), times(pop, factors)
        return replace.flatten(0, 1), pop.flatten(0, 1)


def as_matrices(tiles: Tensor) -> Tensor:
    """Tiles (K, B, S, T, Q, ...) as matrices (K * B * S, T * Q, ...)."""
    return tiles.flatten(5).flatten(3, 4).flatten(0, 2)


def columns(tiles: Tensor) -> tuple[Tensor, ...]:
    """The T columns of tiles (K, B, S, T, Q, ...), views (K * B * S, Q, ...)."""
    return tiles.flatten(5).flatten(0, 2).unbind(1)


def pushes_in_tiles(tiles: Tensor, d: int) -> Tensor:
    """gamma[t - 1 -> t] in the tiles of diagonal d = 0 or 1, a view.

    They lie next to the main diagonal: inside the tiles (J, J), and in the corners of the tiles (J - 1, J).
    """
    if d == 0:
        return tiles.diagonal(-1, 3, 6).movedim(-1, 3)
    return tiles[:, :, :, :1, ..., -1]


def pushes_in_transitions(transitions: Tensor, num_states: int, d: int) -> Tensor:
    """The same, Delta_t[q,x -> r,xy], in ``Tiles.transitions``."""
    size = transitions.shape[3]
    pushes = transitions[..., :size].unflatten(4, (-1, num_states)).permute(0, 1, 4, 2, 5, 3)
    return pushes[:, :, :, 1:] if d == 0 else pushes[1:, :, :, :1]


def in_tiles(transitions: Tensor, tile_size: int) -> Tensor:
    """Delta_t (B, n, C, 2 C + Q) at points in tiles of about the same size, at most ``tile_size``, see ``Tiles``."""
    batch_size, length, size, targets = transitions.shape
    num_tiles = math.ceil((length + 2) / tile_size)
    tile_size = math.ceil((length + 2) / num_tiles)
    points = transitions.new_zeros(batch_size, num_tiles * tile_size, size, targets)
    points[:, 1, 0, 0] = 1  # Eq. 21
    points[:, 2 : length + 2] = transitions
    points[:, 2, 1:, :size] = 0  # Step 1 starts from state 0 and symbol 0.
    return points.unflatten(1, (num_tiles, tile_size)).transpose(0, 1).contiguous()
