"""The nondeterministic stack in PyTorch operations, with one loop over time and a hand-written backward pass.

Everything is computed in float64, in real numbers: see ``_columns.py`` for why that is enough, and ``_tiles.py``
for the notation. Inner weights depend on those of shorter spans only, so tiles are computed diagonal by diagonal.
For the tiles (I, J) of a diagonal,

    - the pops of all k in the tiles between I and J are one matrix product for each distance between tiles;
    - T steps, one for each column, add replacements and the pops of the k in I and in J.

With T about 10, the inner weights of a tile share an exponent. Where they are too far apart for that, T = 1 gives
each block (i, t) an exponent of its own, at the price of many small operations. The backward pass takes the
diagonals in the opposite order; both passes make as many large products as there are pairs of tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._transforms import BackwardPass, DifferentiableOnce
from .._undefined import finite, from_then_on, marks_of
from ._columns import (
    DEAD,
    EXACT_RANGE,
    LARGEST,
    LOWEST_LOG,
    defined,
    exponents_of,
    join_transitions,
    lift,
    normalise,
    power_of_two,
    relative_to_largest,
    times,
    warn_of_range,
)
from ._tiles import Tiles, as_matrices, columns, pushes_in_tiles, pushes_in_transitions

# Large tiles are tried if the log weights of each step differ by less than this.
PLAIN_RANGE = EXACT_RANGE
# They are exact if the products of two inner weights, or of one and a transition, and of the factor between exponents
# cannot be beyond these powers of two.
_LOWEST_POWER = -1000.0
_HIGHEST_POWER = 400.0
# The inner weights of a tile usually lie in that window if T times the range of the log weights is below this.
_RANGE_OF_TILE = 1000.0


def nondeterministic_stack_pytorch(
    push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor, *, return_weights: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """The readings; arguments and results as for ``nondeterministic_stack``."""
    batch_size, length, num_states, num_symbols = push.shape[:4]
    vectors = torch.cat([bottom.double().expand(batch_size, -1)[:, None], values.double()], 1)
    push, replace = (x.permute(0, 1, 3, 2, 5, 4) for x in (push, replace))
    logits, marks = defined(join_transitions(push, replace, pop.transpose(2, 3)))
    marks = from_then_on(marks)[:, :, None]
    weights = _top_weights(logits, num_states)
    readings = torch.bmm(weights.flatten(1, 2), finite(vectors)).unflatten(1, (length, num_symbols, num_states))
    marks_of_readings = marks + from_then_on(marks_of(vectors))[:, 1:]
    readings = (readings + marks_of_readings[:, :, None, None]).to(values.dtype).transpose(2, 3).contiguous()
    if not return_weights:
        return readings
    weights = weights + marks[..., None]
    return readings, weights.unflatten(2, (num_symbols, num_states)).permute(0, 1, 4, 3, 2).to(values.dtype)


def _top_weights(logits: Tensor, num_states: int) -> Tensor:
    """W_t[i][r, y] at [b, t - 1, ry, i + 1], (B, n, C, n + 1), from the log weights (B, n, C, 2 C + Q)."""
    weights: Tensor
    weights, *_ = _TopWeights.apply(logits, num_states)
    return weights


class _TopWeights(DifferentiableOnce):
    """Returns the weights, and for the backward pass whether some transitions are forbidden, and all tensors."""

    op = "nondeterministic_stack"

    @staticmethod
    def forward(logits: Tensor, num_states: int) -> tuple[Tensor | bool, ...]:
        batch_size, length, size, _ = logits.shape
        if logits.numel() == 0:
            return logits.new_zeros(batch_size, length, size, length + 1), False
        inner, masked = _inner_weights(logits, num_states)
        return _without_padding(inner.tops.weights, length), masked, *inner.tops.by_batch(), *inner.tiles.by_batch()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Any, ...]) -> None:
        weights, ctx.masked, *saved = output
        ctx.shape = inputs[0].shape
        ctx.mark_non_differentiable(*saved)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(weights, *saved)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, None]:
        if grad is None or grad.numel() == 0:
            return None if grad is None else grad.new_zeros(ctx.shape), None
        (grad_logits,) = _TopWeightsBackward.apply(grad, ctx.masked, *ctx.saved_tensors)
        return grad_logits, None


class _TopWeightsBackward(BackwardPass):
    op = _TopWeights.op

    @staticmethod
    def forward(grad: Tensor, masked: bool, weights: Tensor, *saved: Tensor) -> tuple[Tensor]:
        # For autograd, this pass depends on the log weights only through ``weights``; that derivative is refused.
        count = len(_Tops._fields)
        return (_backward(Tiles.from_batch(saved[count:]), _Tops.from_batch(saved[:count]), grad, masked),)


class _Tops(NamedTuple):
    """Eqs. 27 and 29 at all points.

    Attributes:
        weights: W_t[i][ry] at [b, t, ry, i], both axes in tiles, (B, K, T, C, K, T).
        alpha: mantissas of alpha[i][qx] at [I, b, qx, i], (K, B, C, T).
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
    def from_batch(cls, tensors: Sequence[Tensor]) -> _Tops:
        """The inverse of ``by_batch``."""
        weights, alpha, exponents, total = tensors
        return cls(weights, alpha.transpose(0, 1), exponents.transpose(0, 1), total)


class _InnerWeights:
    """The inner weights, and what is read from them.

    Args:
        transitions: Delta_t up to a positive factor for each t, in tiles, (K, B, T, C, 2 C + Q).
        num_states: Q.
        plain: whether tiles are large, with one exponent for gamma and gamma'; else T = 1.
    """

    def __init__(self, transitions: Tensor, num_states: int, plain: bool) -> None:
        self.plain, self.num_states = plain, num_states
        self.deepest = transitions.new_zeros(())  # The lowest exponent of a summand, relative to that of its sum.
        self.heights: list[Tensor] = []  # Exponents of the largest elements of gamma, and of gamma'.
        self.popped_heights: list[Tensor] = []
        self.tiles = Tiles(transitions, [], [], [], [])
        num_tiles, batch_size, _, tile_size, _, size = self.tiles.sizes
        last = transitions.new_zeros(num_tiles * batch_size, size, size * tile_size)
        for d in range(num_tiles):
            last = self._add_diagonal(d, last[: (num_tiles - d) * batch_size])
        self.tops = self._read_tops()

    def fit_together(self) -> bool:
        """Whether the numbers were exact with one exponent for each tile."""
        scratch = torch.empty_like(self.tiles.gamma[0]).flatten()  # Touching new memory each time would take longer.
        tiles, smallest = self.tiles, []
        for x in (*tiles.gamma, *tiles.popped, self.tops.alpha):
            smallest.append(torch.threshold(x, 0, 1, out=scratch[: x.numel()].view_as(x)).amin())
        lowest = torch.stack(smallest).amin().log2()
        power = lowest + lowest.clamp_max(-PLAIN_RANGE / math.log(2)) + self.deepest
        highest = [self.tops.alpha.amax().log2()]
        highest += [(height - tiles.exponents[d]).amax() for d, height in enumerate(self.heights)]
        highest += [(height - tiles.popped_exponents[d]).amax() for d, height in enumerate(self.popped_heights)]
        return bool((power >= _LOWEST_POWER) & (torch.stack(highest).amax() <= _HIGHEST_POWER))

    def _add_diagonal(self, d: int, last: Tensor) -> Tensor:
        """Compute the tiles of diagonal d from ``last``, their column before the first, (.., C, C * T) at [ry, qx i].

        Returns:
            Their last column.
        """
        tiles = self.tiles
        tiles.gamma.append(self._from_between(d, self._add_exponents(d, last)))
        tiles.popped.append(tiles.empty_popped(d))
        last = self._fill_columns(d, last)
        for mantissas, exponents, heights in (
            (tiles.gamma, tiles.exponents, self.heights),
            (tiles.popped, tiles.popped_exponents, self.popped_heights),
        ):
            if self.plain:
                heights.append(exponents[d] + exponents_of(mantissas[d].amax((2, 3, 4, 5, 6))))
            else:
                blocks, exponents[d] = normalise(mantissas[d].flatten(2, 4).flatten(3), exponents[d])
                mantissas[d] = blocks.view_as(mantissas[d])
                heights.append(exponents[d])
        return last if self.plain else tiles.gamma[d].view_as(last)

    def _add_exponents(self, d: int, last: Tensor) -> Tensor:
        """Choose the exponents of the tiles of diagonal d, given the column before.

        Returns:
            ``Tiles.split_factors`` of d and e, at index e.
        """
        tiles = self.tiles
        count, batch_size = len(tiles.transitions) - d, tiles.transitions.shape[1]
        zero = last.new_zeros(count, batch_size)
        if d == 0:
            tiles.exponents.append(zero)
            tiles.popped_exponents.append(zero)
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
        # Tiles of one column do not add popped to gamma, and so need not have the same exponent.
        tiles.popped_exponents.append(sums if self.plain else before)
        return power_of_two(summands - sums)

    def _exponents_of_sums(self, exponents: Tensor, heights: Tensor) -> Tensor:
        """The exponents of sums, given those of the summands, and of their largest elements, along the first axis."""
        sums = heights.amax(0).clamp_min(DEAD)
        depths = torch.where(heights > DEAD / 2, exponents - sums, 0)
        self.deepest = torch.minimum(self.deepest, depths.amin())
        return sums

    def _from_between(self, d: int, factors: Tensor) -> Tensor:
        """The part of gamma(I, J) from pushes, and from the pops whose k lies in a tile between I and J."""
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
        """Eqs. 24 and 25 for the T columns of the tiles of diagonal d, given the column before; the last of them."""
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

    def _read_tops(self) -> _Tops:
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
            alpha[j] = _solve(tiles.gamma[0][j], into)
            diagonals.append(torch.diag_embed(alpha[j]))
            weights[:, j, :, :, j] = _in_time(_numerators(tiles.gamma[0][j], diagonals[j]))
            sums = alpha[j].sum(1)
            total[:, j] = torch.where(sums == 0, 1, sums)
        weights /= total[:, :, :, None, None, None]
        return _Tops(weights, alpha, exponents, total)

    def _read_from_rows_before(self, j: int, weights: Tensor, alpha: list[Tensor], exponents: Tensor) -> None:
        """The products in Eq. 27 with t in tile j and i in the tiles before it, and the exponent of their sums."""
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


def _without_padding(x: Tensor, length: int) -> Tensor:
    """Points (B, K, T, C, K, T) to t = 1..n and i = -1..n-1, (B, n, C, n + 1)."""
    return x.flatten(4).flatten(1, 2)[:, 2 : length + 2, :, : length + 1]


def _in_tiles(transitions: Tensor, tile_size: int) -> Tensor:
    """Delta_t (B, n, C, 2 C + Q) at points in tiles of about the same size, at most ``tile_size``, see ``Tiles``."""
    batch_size, length, size, targets = transitions.shape
    num_tiles = math.ceil((length + 2) / tile_size)
    tile_size = math.ceil((length + 2) / num_tiles)
    points = transitions.new_zeros(batch_size, num_tiles * tile_size, size, targets)
    points[:, 1, 0, 0] = 1  # Eq. 21
    points[:, 2 : length + 2] = transitions
    points[:, 2, 1:, :size] = 0  # Step 1 starts from state 0 and symbol 0.
    return points.unflatten(1, (num_tiles, tile_size)).transpose(0, 1).contiguous()


def _in_large_tiles(transitions: Tensor, difference: float) -> Tensor:
    """The same with T as large as it may be, given how far the log weights of a step differ.

    Delta_t is divided by about the geometric mean of the sums out of each configuration, so that runs keep their
    weight, and by a power of two, so that nothing is rounded.
    """
    sums = transitions.sum(3)
    typical = torch.where(sums == 0, 1, sums).log2().mean(2).round().exp2()
    tile_size = min(_fastest_tile_size(transitions), int(_RANGE_OF_TILE / max(1.0, difference)))
    return _in_tiles(transitions / typical[:, :, None, None], tile_size)


def _fastest_tile_size(transitions: Tensor) -> int:
    """Measured. Large tiles make few launches, but leave more work to the steps, which are slow on a CPU."""
    if transitions.is_cuda:
        return 32
    return 8 if transitions.shape[1] < 38 else 12


def _in_time(x: Tensor) -> Tensor:
    """A tile (B, S, T, Q, ...) of gamma or of the products in Eq. 27 as (B, T, C, ...)."""
    return x.transpose(1, 2).flatten(2, 3)


def _numerators(gamma: Tensor, alpha: Tensor) -> Tensor:
    """alpha[i][qx] gamma[i -> t][qx -> ry], summed over qx, (B, S, T, Q, T).

    Args:
        gamma: a tile of gamma.
        alpha: alpha[i][qx] at index [b, qx, i, i], and 0 elsewhere, (B, C, T, T).
    """
    shape = *gamma.shape[:4], gamma.shape[5]
    return torch.bmm(gamma.flatten(4).flatten(1, 3), alpha.flatten(1, 2)).view(shape)


def _solve(gamma: Tensor, into: Tensor, transposed: bool = False) -> Tensor:
    """alpha[t] = into[t] + sum_{i < t} alpha[i] gamma[i -> t] within a tile.

    Args:
        gamma: a tile (J, J), (B, S, T, Q, C, T).
        into: (B, T, C).
        transposed: solve x[i] = into[i] + sum_{t > i} gamma[i -> t] x[t] instead.

    Returns:
        alpha[t][ry] at [b, ry, t], (B, C, T).
    """
    matrix = -gamma.permute(0, 2, 1, 3, 5, 4).flatten(4).flatten(1, 3)
    if transposed:
        matrix = matrix.transpose(1, 2)
    x = torch.linalg.solve_triangular(matrix, into.reshape(len(into), -1, 1), upper=transposed, unitriangular=True)
    return x.view_as(into).transpose(1, 2)


def _inner_weights(logits: Tensor, num_states: int) -> tuple[_InnerWeights, bool]:
    """The inner weights, in large tiles where that is exact, and whether some transitions are forbidden."""
    transitions, difference, masked = _exponentiate(logits)
    if difference > EXACT_RANGE:
        warn_of_range()
    undefined = math.isnan(difference)
    if undefined or difference <= PLAIN_RANGE:
        inner = _InnerWeights(_in_large_tiles(transitions, difference), num_states, plain=True)
        if undefined or inner.fit_together():
            return inner, masked
    if bool((transitions == 0).any()):
        _leave_out_unused_pushes(transitions, num_states)
    return _InnerWeights(_in_tiles(transitions, 1), num_states, plain=False), True


def _leave_out_unused_pushes(transitions: Tensor, num_states: int) -> None:
    """Set pushes onto configurations that cannot be on top to 0.

    No run contains them, and their inner weights could outgrow all others.
    """
    length, size = transitions.shape[1:3]
    possible = _InnerWeights(_in_large_tiles(transitions.sign(), 1.0), num_states, plain=True)
    unused = possible.tops.alpha.permute(1, 0, 3, 2).flatten(1, 2)[:, 1 : length + 1] <= 0
    transitions[..., :size].masked_fill_(unused[..., None], 0)


def _exponentiate(logits: Tensor) -> tuple[Tensor, float, bool]:
    """Delta_t up to a factor for each step; how far a finite log weight is below the largest, at most; and whether
    some are -inf.
    """
    relative = relative_to_largest(logits)
    lowest = float(relative.amin())
    masked = lowest == -torch.inf
    if masked:
        lowest = float(torch.where(relative == -torch.inf, 0, relative).amin())
    if lowest < LOWEST_LOG:
        relative = lift(relative)
    return relative.exp_(), -lowest, masked


def _backward(tiles: Tiles, tops: _Tops, grad: Tensor, masked: bool) -> Tensor:
    """The gradient of the log weights (B, n, C, 2 C + Q), given that of W (B, n, C, n + 1)."""
    length = grad.shape[1]
    num_tiles, _, _, tile_size, _, _ = tiles.sizes
    padding = num_tiles * tile_size - length
    grad = pad(grad, (0, padding - 1, 0, 0, 2, padding - 2))
    beta = _softmax_gradient(tops.weights.flatten(4).flatten(1, 2), grad).view_as(tops.weights)
    beta /= tops.total[:, :, :, None, None, None]
    beta.masked_fill_(tops.weights == 0, 0)
    _add_gradient_of_alpha(tiles, tops, beta)
    transitions = _Gradient(tiles, tops, beta, masked).transitions
    return transitions.transpose(0, 1).flatten(1, 2)[:, 2 : length + 2]


def _softmax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    """dL/dx for weights = softmax of x over the last two axes.

    The gradient is centred on that of the largest weight first: where one weight is almost 1, the usual
    formula is a difference of two almost equal numbers.
    """
    shape = grad.shape
    weights, grad = weights.flatten(2), grad.flatten(2)
    grad = grad - grad.gather(2, weights.argmax(2, keepdim=True))
    grad -= torch.linalg.vecdot(weights, grad)[..., None]
    return grad.view(shape)


def _top_factors(tiles: Tiles, tops: _Tops, i: int, j: int) -> Tensor:
    """What alpha[i] gamma[i -> t] is multiplied by in alpha[t], for tiles i and j, (B,)."""
    return power_of_two(tops.exponents[i] + tiles.exponents[j - i][i] - tops.exponents[j])


def _add_gradient_of_alpha(tiles: Tiles, tops: _Tops, beta: Tensor) -> None:
    """Add 2^A_t dL/dalpha[t] to ``beta``, which then is the derivative of the products in Eq. 27."""
    num_tiles = len(tiles.transitions)
    grads: dict[int, Tensor] = {}
    for i in reversed(range(num_tiles)):
        grad = torch.zeros_like(tops.alpha[i])
        for j in range(i, num_tiles):
            tile = beta[:, j, :, :, i]
            if j > i:
                tile += grads[j]
                _clean(tile, tops.weights[:, j, :, :, i], tiles)
            into = _numerators_backward(tiles.gamma[j - i][i], tile)
            grad += into * _top_factors(tiles, tops, i, j)[:, None, None]
        grads[i] = _solve(tiles.gamma[0][i], grad.transpose(1, 2), transposed=True).transpose(1, 2)[..., None]
        tile = beta[:, i, :, :, i]
        tile += grads[i]
        _clean(tile, tops.weights[:, i, :, :, i], tiles)


def _numerators_backward(gamma: Tensor, beta: Tensor) -> Tensor:
    """sum_{t, ry} gamma[i -> t][qx -> ry] beta[i, t][ry] (B, C, T) for tiles of gamma and of beta (B, T, C, T)."""
    batch_size, num_symbols, _, num_states, size, tile_size = gamma.shape
    beta = beta.unflatten(2, (num_symbols, num_states)).transpose(1, 2).flatten(1, 3)
    products = torch.bmm(beta.transpose(1, 2), gamma.flatten(4).flatten(1, 3))
    return products.view(batch_size, tile_size, size, tile_size).diagonal(0, 1, 3)


def _clean(grad: Tensor, weight: Tensor, tiles: Tiles) -> None:
    """Set a gradient to 0 where the ``weight`` is 0, and bound it.

    No run passes where the weight is 0: the derivative has no effect there, and can be very large. Elsewhere it
    can if log weights are very far apart.
    """
    grad.masked_fill_(weight == 0, 0)
    if tiles.transitions.shape[2] == 1:
        grad.nan_to_num_(0, 0, 0).clamp_(-LARGEST, LARGEST)


class _Gradient:
    """The gradient of the transitions' log weights, in the shape of ``Tiles.transitions``.

    ``outer[d]`` is 2^e dL/dgamma in the shape of ``tiles.gamma[d]`` with the exponents e of that.
    """

    def __init__(self, tiles: Tiles, tops: _Tops, beta: Tensor, masked: bool) -> None:
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
        """2^e alpha[i][qx] dL/d(the product in Eq. 27)."""
        tiles, tops = self.tiles, self.tops
        num_tiles, _, num_symbols, _, num_states, _ = tiles.sizes
        count = num_tiles - d
        factors = torch.stack([_top_factors(tiles, tops, i, i + d) for i in range(count)])
        alpha = times(tops.alpha[:count], factors)[:, :, None, None, None]
        by_tile = beta.diagonal(-d, 1, 4).movedim(-1, 0).unflatten(3, (num_symbols, num_states)).transpose(2, 3)
        return torch.mul(by_tile[..., None, :], alpha, out=tiles.empty_gamma(d))

    def _add_from_beyond(self, d: int, outer: Tensor, outer_popped: Tensor) -> None:
        """Add what pops into tiles (I, J + e) and (I - e, J) contribute to ``outer`` and ``outer_popped`` of (I, J)."""
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
        """Finish the T columns of ``outer[d]``, from the last to the first.

        Args:
            d: the diagonal.
            outer_popped: 2^e dL/dgamma' without the pops whose i lies in I.
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
                _clean(new, gamma_columns[tau], tiles)
            pops = torch.baddbmm(outer_popped[:, now], new, inside)
            if d == 0 or self.masked:
                _clean(pops, popped_columns[tau], tiles)
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
        """Add the gradients of replacements and pops in column ``tau``.

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
