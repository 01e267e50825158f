"""The forward pass of the nondeterministic stack in tiles: (a)-(d) of ``docs/algorithm.md``, with exponents as in (e).

Inner weights depend only on shorter spans, so tiles are computed diagonal by diagonal. For the tiles (I, J) of
a diagonal,

    - the pops of all k in the tiles between I and J are one matrix product for each distance between tiles;
    - T steps, one for each column, add replacements and the pops of the k in I and in J.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ._columns import DEAD, exponents_of, power_of_two, times
from ._precision import LOWEST_POWER
from ._tiles import Tiles, as_matrices, columns, pushes_in_tiles, pushes_in_transitions

# Tiles are exact if no product of an inner weight, another one or a transition, and the factor between exponents is
# below the power of two LOWEST_POWER or above this one.
_HIGHEST_POWER = 400.0


class Tops(NamedTuple):
    """(c) and (d) (Eq. 27 and Eq. 29) at all points.

    Attributes:
        weights: W_t[i][r,y] at [b, t, yr, i], both axes in tiles, (B, K, T, C, K, T).
        alpha: mantissas of alpha[i][q,x] at [I, b, xq, i], (K, B, C, T).
        exponents: of ``alpha``, (K, B).
        total: the sum of the mantissas of alpha[t], but 1 where no run is left, (B, K, T).
    """

    weights: Tensor
    alpha: Tensor
    exponents: Tensor
    total: Tensor

    def by_batch(self) -> tuple[Tensor, ...]:
        """All tensors, with the batch as the first axis."""
        return self.weights, self.alpha.transpose(0, 1), self.exponents.transpose(0, 1), self.total

    @classmethod
    def from_batch(cls, tensors: Sequence[Tensor]) -> Tops:
        """The inverse of ``by_batch``."""
        weights, alpha, exponents, total = tensors
        return cls(weights, alpha.transpose(0, 1), exponents.transpose(0, 1), total)


class InnerWeights:
    """The inner weights, by (a) and (b), and what is read from them, by (c) and (d).

    Args:
        transitions: Delta_t up to a positive factor for each t, in tiles, (K, B, T, C, 2 C + Q).
        num_states: Q.
    """

    def __init__(self, transitions: Tensor, num_states: int) -> None:
        self.num_states = num_states
        # The lowest exponent of a summand, relative to its sum's, (B,).
        self.deepest = transitions.new_zeros(transitions.shape[1])
        self.heights: list[Tensor] = []  # Exponents of the largest elements of gamma, and of gamma'.
        self.popped_heights: list[Tensor] = []
        self.tiles = Tiles(transitions, [], [], [])
        num_tiles, batch_size, _, tile_size, _, size = self.tiles.sizes
        last = transitions.new_zeros(num_tiles * batch_size, size, size * tile_size)
        for d in range(num_tiles):
            last = self._add_diagonal(d, last[: (num_tiles - d) * batch_size])
        self.tops = self._read_tops()

    def fit_together(self, ranges: Tensor) -> Tensor:
        """For which sequences the numbers were exact with one exponent for each tile, (B,).

        Args:
            ranges: how far apart the log weights of a step are, (B,).
        """
        tiles = self.tiles
        highest = [self.tops.alpha.amax((0, 2, 3)).log2()]
        for heights in (self.heights, self.popped_heights):
            highest += [
                (height - exponents).amax(0) for height, exponents in zip(heights, tiles.exponents, strict=True)
            ]
        scratch = torch.empty_like(tiles.gamma[0]).flatten()  # Touching new memory each time would take longer.
        lowest = torch.stack([_smallest(x, scratch) for x in (*tiles.gamma, *tiles.popped, self.tops.alpha)]).amin(0)
        lowest = lowest.log2()
        power = lowest + torch.minimum(lowest, -ranges / math.log(2)) + self.deepest
        return (power >= LOWEST_POWER) & (torch.stack(highest).amax(0) <= _HIGHEST_POWER)

    def _add_diagonal(self, d: int, last: Tensor) -> Tensor:
        """Compute the tiles of diagonal d from ``last``, their column before the first, (.., C, C * T) at [yr, xq i].

        Returns:
            Their last column.
        """
        tiles = self.tiles
        tiles.gamma.append(self._from_between(d, self._add_exponents(d, last)))
        tiles.popped.append(tiles.empty_popped(d))
        last = self._fill_columns(d, last)
        for mantissas, heights in ((tiles.gamma, self.heights), (tiles.popped, self.popped_heights)):
            heights.append(tiles.exponents[d] + exponents_of(mantissas[d].amax((2, 3, 4, 5, 6))))
        return last

    def _add_exponents(self, d: int, last: Tensor) -> Tensor:
        """E of (e): choose the exponents of the tiles of diagonal d, given the column before.

        Returns:
            ``Tiles.split_factors`` of d and e, at index e.
        """
        tiles = self.tiles
        count, batch_size = len(tiles.transitions) - d, tiles.transitions.shape[1]
        zero = last.new_zeros(count, batch_size)
        if d == 0:
            tiles.exponents.append(zero)
            return zero
        before = tiles.exponents[d - 1][:count]
        exponents, heights = [before], [before + exponents_of(last.amax((1, 2))).view_as(before)]
        if d == 1:  # pushes
            exponents.append(zero)
            heights.append(zero)
        for e in range(1, d):
            exponents.append(tiles.split_exponents(d, e))
            heights.append(self.heights[e][:count] + self.popped_heights[d - e][e : e + count])
        summands = torch.stack(exponents)
        sums = self._exponents_of_sums(summands, torch.stack(heights))
        tiles.exponents.append(sums)
        return power_of_two(summands - sums)

    def _exponents_of_sums(self, exponents: Tensor, heights: Tensor) -> Tensor:
        """The exponents of sums, given the exponents and the largest elements of summands along the first axis."""
        sums = heights.amax(0).clamp_min(DEAD)
        depths = torch.where(heights > DEAD / 2, exponents - sums, 0)
        self.deepest = torch.minimum(self.deepest, depths.flatten(0, -2).amin(0))
        return sums

    def _from_between(self, d: int, factors: Tensor) -> Tensor:
        """The part of (e) for gamma(I, J) from pushes, and from the far pops: k lies in a tile between I and J."""
        tiles = self.tiles
        gamma = tiles.empty_gamma(d)
        if d < 2:
            pushes = pushes_in_transitions(tiles.transitions, self.num_states, d)
            pushes_in_tiles(gamma.zero_(), d).copy_(times(pushes, power_of_two(-tiles.exponents[d])))
        count = len(gamma)
        for e in range(1, d):
            popped = times(tiles.popped[d - e][e : e + count], factors[e])
            inner = as_matrices(tiles.gamma[e][:count])
            as_matrices(gamma).baddbmm_(as_matrices(popped), inner, beta=0 if e == 1 else 1)
        return gamma

    def _fill_columns(self, d: int, last: Tensor) -> Tensor:
        """(e) and (b) (Eq. 24 and Eq. 25) for the T columns of the tiles of diagonal d, given the column before.

        Returns:
            The last of them.
        """
        tiles = self.tiles
        _, _, num_symbols, tile_size, num_states, _ = tiles.sizes
        gamma, gamma_columns = as_matrices(tiles.gamma[d]), columns(tiles.gamma[d])
        pops_inside = as_matrices(tiles.gamma[0][: len(tiles.gamma[d])])
        popped_columns, popped_columns_inside = columns(tiles.popped[d]), columns(tiles.popped[0][d:])
        for tau in range(tile_size):
            replace, pop = tiles.moves(d, tau)
            popped = popped_columns[tau]
            pops = torch.bmm(pop.transpose(1, 2), last).view(-1, num_states, num_symbols, num_states, tile_size)
            popped.view(-1, num_symbols, num_states, tile_size, num_states).copy_(pops.permute(0, 2, 1, 4, 3))
            if d > 0:  # k in I
                new = torch.baddbmm(gamma_columns[tau], popped, pops_inside)
            else:
                new = gamma_columns[tau].clone(memory_format=torch.contiguous_format)
            if tau > 0:  # k in J
                earlier = tau * num_states
                new.baddbmm_(popped_columns_inside[tau][:, :, :earlier], gamma[:, :earlier])
            last = new.view_as(last).baddbmm_(replace.transpose(1, 2), last)
            gamma_columns[tau].copy_(new)
        return last

    def _read_tops(self) -> Tops:
        """(c) and (d) (Eq. 27 and Eq. 29)."""
        tiles = self.tiles
        num_tiles, batch_size, _, tile_size, _, size = tiles.sizes
        weights = tiles.transitions.new_zeros(batch_size, num_tiles, tile_size, size, num_tiles, tile_size)
        alpha = tiles.transitions.new_zeros(num_tiles, batch_size, size, tile_size)
        exponents = tiles.transitions.new_zeros(num_tiles, batch_size)
        total = tiles.transitions.new_ones(batch_size, num_tiles, tile_size)
        diagonals: list[Tensor] = []
        for j in range(num_tiles):
            self._read_from_rows_before(j, weights, diagonals, exponents)
            into = weights[:, j].sum((3, 4))  # What the rows before add to alpha[t].
            if j == 0:
                into[:, 0, 0] = 1  # Eq. 23
            alpha[j] = solve(tiles.gamma[0][j], into)
            diagonals.append(torch.diag_embed(alpha[j]))
            weights[:, j, :, :, j] = _in_time(_numerators(tiles.gamma[0][j], diagonals[j]))
            sums = alpha[j].sum(1)
            total[:, j] = torch.where(sums == 0, 1, sums)
        weights /= total[:, :, :, None, None, None]
        return Tops(weights, alpha, exponents, total)

    def _read_from_rows_before(self, j: int, weights: Tensor, alpha: list[Tensor], exponents: Tensor) -> None:
        """N_t[i] of (c) with t in tile j and i in the tiles before it, and the exponent of their sums."""
        if j == 0:
            return
        tiles = self.tiles
        parts, part_exponents = [], []
        for i in range(j):
            parts.append(_numerators(tiles.gamma[j - i][i], alpha[i]))
            part_exponents.append(exponents[i] + tiles.exponents[j - i][i])
        heights = exponents_of(torch.stack([part.amax((1, 2, 3, 4)) for part in parts]))
        summands = torch.stack(part_exponents)
        exponents[j] = self._exponents_of_sums(summands, summands + heights)
        factors = power_of_two(summands - exponents[j])
        for i, part in enumerate(parts):
            weights[:, j, :, :, i] = _in_time(part * factors[i][:, None, None, None, None])


def _smallest(x: Tensor, scratch: Tensor) -> Tensor:
    """The smallest positive number of each sequence, and at most 1, (B,), for x (K, B, ...)."""
    return torch.threshold(x, 0, 1, out=scratch[: x.numel()].view_as(x)).flatten(2).amin((0, 2))


def _in_time(x: Tensor) -> Tensor:
    """A tile (B, S, T, Q, ...) of gamma or of N_t[i] as (B, T, C, ...)."""
    return x.transpose(1, 2).flatten(2, 3)


def _numerators(gamma: Tensor, alpha: Tensor) -> Tensor:
    """N_t[i][r,y] of (c) for one tile, without exponents, (B, S, T, Q, T).

    Args:
        gamma: a tile of gamma.
        alpha: alpha[i][q,x] at index [b, xq, i, i], and 0 elsewhere, (B, C, T, T).
    """
    shape = *gamma.shape[:4], gamma.shape[5]
    return torch.bmm(gamma.flatten(4).flatten(1, 3), alpha.flatten(1, 2)).view(shape)


def solve(gamma: Tensor, into: Tensor, transposed: bool = False) -> Tensor:
    """(c) within a tile: alpha[t] = into[t] + sum_{i < t} alpha[i] gamma[i -> t].

    Args:
        gamma: a tile (J, J), (B, S, T, Q, C, T).
        into: (B, T, C).
        transposed: solve x[i] = into[i] + sum_{t > i} gamma[i -> t] x[t] instead.

    Returns:
        alpha[t][r,y] at [b, yr, t], (B, C, T).
    """
    matrix = -gamma.permute(0, 2, 1, 3, 5, 4).flatten(4).flatten(1, 3)
    if transposed:
        matrix = matrix.transpose(1, 2)
    x = torch.linalg.solve_triangular(matrix, into.reshape(len(into), -1, 1), upper=transposed, unitriangular=True)
    return x.view_as(into).transpose(1, 2)
