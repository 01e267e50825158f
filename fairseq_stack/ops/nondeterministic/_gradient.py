"""The backward pass of the nondeterministic stack in tiles: (g)-(l) of ``docs/algorithm.md``, with exponents as in (m).

It takes the diagonals, and the columns of each, in the reverse order of the forward pass.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from ._column_gradient import through_softmax
from ._columns import power_of_two, times
from ._inner_weights import Tops, solve
from ._tiles import Tiles, as_matrices, columns, pushes_in_tiles, pushes_in_transitions


def gradient_of_log_weights(tiles: Tiles, tops: Tops, grad: Tensor, masked: bool) -> Tensor:
    """(g)-(m): the gradient of the log weights (B, n, C, 2 C + Q), given the gradient of W (B, n, C, n + 1)."""
    length = grad.shape[1]
    num_tiles, _, _, tile_size, _, _ = tiles.sizes
    padding = num_tiles * tile_size - length
    grad = pad(grad, (0, padding - 1, 0, 0, 2, padding - 2))
    weights = tops.weights.flatten(4).flatten(1, 2)
    beta = through_softmax(weights.flatten(2), grad.flatten(2)).view_as(tops.weights)
    beta /= tops.total[:, :, :, None, None, None]
    beta.masked_fill_(tops.weights == 0, 0)
    _add_gradient_of_alpha(tiles, tops, beta)
    transitions = _Gradient(tiles, tops, beta, masked).transitions
    return transitions.transpose(0, 1).flatten(1, 2)[:, 2 : length + 2]


def _top_factors(tiles: Tiles, tops: Tops, i: int, j: int) -> Tensor:
    """h[i, t] of (m) for tiles i and j: what alpha[i] gamma[i -> t] is multiplied by in alpha[t], (B,)."""
    return power_of_two(tops.exponents[i] + tiles.exponents[j - i][i] - tops.exponents[j])


def _add_gradient_of_alpha(tiles: Tiles, tops: Tops, beta: Tensor) -> None:
    """(i): add 2^A_t dL/dalpha[t] to ``beta``, which then is B_t of (m), the derivative of the numerators N_t."""
    num_tiles = len(tiles.transitions)
    grads: dict[int, Tensor] = {}
    for i in reversed(range(num_tiles)):
        grad = torch.zeros_like(tops.alpha[i])
        for j in range(i, num_tiles):
            tile = beta[:, j, :, :, i]
            if j > i:
                tile += grads[j]
                _clean(tile, tops.weights[:, j, :, :, i])
            into = _numerators_backward(tiles.gamma[j - i][i], tile)
            grad += into * _top_factors(tiles, tops, i, j)[:, None, None]
        grads[i] = solve(tiles.gamma[0][i], grad.transpose(1, 2), transposed=True).transpose(1, 2)[..., None]
        tile = beta[:, i, :, :, i]
        tile += grads[i]
        _clean(tile, tops.weights[:, i, :, :, i])


def _numerators_backward(gamma: Tensor, beta: Tensor) -> Tensor:
    """The sums of (i) over t and (r, y) for a tile of gamma and one of beta (B, T, C, T), (B, C, T)."""
    batch_size, num_symbols, _, num_states, size, tile_size = gamma.shape
    beta = beta.unflatten(2, (num_symbols, num_states)).transpose(1, 2).flatten(1, 3)
    products = torch.bmm(beta.transpose(1, 2), gamma.flatten(4).flatten(1, 3))
    return products.view(batch_size, tile_size, size, tile_size).diagonal(0, 1, 3)


def _clean(grad: Tensor, weight: Tensor) -> None:
    """Set a gradient to 0 where the ``weight`` is 0: no run passes there, and the derivative can be very large."""
    grad.masked_fill_(weight == 0, 0)


class _Gradient:
    """(j)-(l), written as (m): the gradient of the transitions' log weights, in the shape of ``Tiles.transitions``.

    ``outer[d]`` is O, 2^e dL/dgamma, in the shape of ``tiles.gamma[d]`` and with its exponents e.
    """

    def __init__(self, tiles: Tiles, tops: Tops, beta: Tensor, masked: bool) -> None:
        self.tiles, self.tops, self.masked = tiles, tops, masked
        self.transitions = torch.zeros_like(tiles.transitions)
        self.outer: dict[int, Tensor] = {}
        carried = None
        for d in reversed(range(len(tiles.gamma))):
            carried = self._add_diagonal(d, beta, carried)

    def _add_diagonal(self, d: int, beta: Tensor, carried: Tensor | None) -> Tensor | None:
        tiles = self.tiles
        outer, outer_popped = self._from_tops(d, beta), tiles.empty_popped(d).zero_()
        self.outer[d] = outer
        self._add_from_beyond(d, as_matrices(outer), as_matrices(outer_popped))
        carried = self._fill_columns(d, as_matrices(outer_popped), carried)
        if d < 2:
            target = pushes_in_transitions(self.transitions, tiles.sizes[4], d)
            target += pushes_in_tiles(tiles.gamma[d], d) * pushes_in_tiles(outer, d)
        return carried

    def _from_tops(self, d: int, beta: Tensor) -> Tensor:
        """The first term of O in (m), h a B."""
        tiles, tops = self.tiles, self.tops
        num_tiles, _, num_symbols, _, num_states, _ = tiles.sizes
        count = num_tiles - d
        factors = torch.stack([_top_factors(tiles, tops, i, i + d) for i in range(count)])
        alpha = times(tops.alpha[:count], factors)[:, :, None, None, None]
        by_tile = beta.diagonal(-d, 1, 4).movedim(-1, 0).unflatten(3, (num_symbols, num_states)).transpose(2, 3)
        return torch.mul(by_tile[..., None, :], alpha, out=tiles.empty_gamma(d))

    def _add_from_beyond(self, d: int, outer: Tensor, outer_popped: Tensor) -> None:
        """Add what pops into tiles (I, J + e) and (I - e, J) contribute to O and P of (I, J): by (m)."""
        tiles = self.tiles
        num_tiles, _, num_symbols = tiles.sizes[:3]
        for e in range(1, num_tiles - d):
            count = num_tiles - d - e
            beyond = as_matrices(self.outer[d + e])
            popped = times(tiles.popped[e][d : d + count], tiles.split_factors(d + e, d))
            outer[: len(beyond)].baddbmm_(as_matrices(popped).transpose(1, 2), beyond)
            product = torch.bmm(beyond, as_matrices(tiles.gamma[e][:count]).transpose(1, 2))
            factors = tiles.split_factors(d + e, e)[:, :, None].expand(-1, -1, num_symbols).reshape(-1, 1, 1)
            outer_popped[-len(beyond) :].addcmul_(product, factors)

    def _fill_columns(self, d: int, outer_popped: Tensor, carried: Tensor | None) -> Tensor | None:
        """Finish the T columns of ``outer[d]``, from the last to the first, by (m).

        Args:
            d: the diagonal.
            outer_popped: P, 2^e dL/dgamma', without the pops whose i lies in I.
            carried: what the first column of the next tiles contributes, (.., C, C * T); None where there is none.

        Returns:
            What the first column contributes to the one before.
        """
        tiles = self.tiles
        _, _, num_symbols, tile_size, num_states, size = tiles.sizes
        outer, outer_columns = as_matrices(self.outer[d]), columns(self.outer[d])
        gamma_columns, popped_columns = columns(tiles.gamma[d]), columns(tiles.popped[d])
        inside = as_matrices(tiles.gamma[0][: len(tiles.gamma[d])]).transpose(1, 2)
        popped_inside = as_matrices(tiles.popped[0][d:]).transpose(1, 2)
        for tau in reversed(range(tile_size)):
            now, later = slice(tau * num_states, (tau + 1) * num_states), slice((tau + 1) * num_states, None)
            new = torch.baddbmm(outer_columns[tau], popped_inside[:, now, later], outer[:, later])
            by_row = new.view(-1, size, size * tile_size)
            if carried is not None:
                by_row[: len(carried)] += carried
            if d == 0 or self.masked:
                _clean(new, gamma_columns[tau])
            pops = torch.baddbmm(outer_popped[:, now], new, inside)
            if d == 0 or self.masked:
                _clean(pops, popped_columns[tau])
            outer_columns[tau].copy_(new)
            if tau > 0:
                last = tiles.gamma[d][:, :, :, tau - 1]
            elif d > 0:
                last = tiles.gamma[d - 1][:-1, :, :, -1]
            else:
                break
            pops = pops.view(-1, num_symbols, num_states, tile_size, num_states).permute(0, 2, 1, 4, 3)
            carried = self._move_back(d, tau, last.reshape(by_row.shape), by_row, pops.flatten(2))
        return carried

    def _move_back(self, d: int, tau: int, last: Tensor, outer: Tensor, outer_popped: Tensor) -> Tensor:
        """Add the gradients of replacements and pops in column ``tau``, by (l).

        Args:
            d: the diagonal.
            tau: the column.
            last: gamma in the column before, (.., C, C * T).
            outer: of this column, (.., C, C * T).
            outer_popped: of this column, (.., Q, C * T).

        Returns:
            What this column contributes to the outer weights of the one before.
        """
        tiles = self.tiles
        size = tiles.sizes[5]
        replace, pop = tiles.moves(d, tau)
        target = self.transitions[d:, :, tau]
        target[..., size : 2 * size].flatten(0, 1).addcmul_(replace, torch.bmm(last, outer.transpose(1, 2)))
        target[..., 2 * size :].flatten(0, 1).addcmul_(pop, torch.bmm(last, outer_popped.transpose(1, 2)))
        return torch.bmm(replace, outer).baddbmm_(pop, outer_popped)
