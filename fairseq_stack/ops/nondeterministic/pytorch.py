"""The nondeterministic stack in PyTorch operations, with one loop over time and a hand-written backward pass.

Everything is computed in float64, in real numbers: see ``_columns.py`` for the notation and for why that is
enough. As long as the inner weights stay well inside the range of float64 they are used as they are; if they
do not, the pass is repeated with an exponent for each block.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

from ._columns import (
    DEAD,
    LARGEST,
    LOWEST_LOG,
    ColumnExponents,
    Top,
    as_blocks,
    from_blocks,
    from_popped,
    join_transitions,
    lift,
    next_column,
    next_column_with_exponents,
    power_of_two,
    read_top,
    read_top_with_exponents,
    relative_to_largest,
    scale_blocks,
    times,
)

# Plain numbers are tried if the log weights of each step differ by less than this, and they are exact if all
# that are not 0 stay in this window, in which no product of two numbers leaves the range of float64.
PLAIN_RANGE = 230.0
_PLAIN_WINDOW = (2.0**-450, 2.0**450)


def nondeterministic_stack_pytorch(
    push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor, *, return_weights: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """The readings; arguments and results as for ``nondeterministic_stack``."""
    batch_size, length, num_states, num_symbols = push.shape[:4]
    vectors = torch.cat([bottom.double().expand(batch_size, -1)[:, None], values.double()], 1)
    weights = _top_weights(join_transitions(push, replace, pop), num_states)
    weights = weights.view(batch_size, length, length + 1, num_states, num_symbols)
    readings = torch.einsum("btirs,bim->btrsm", weights, vectors).to(values.dtype)
    return (readings, weights.to(values.dtype)) if return_weights else readings


def _top_weights(logits: Tensor, num_states: int) -> Tensor:
    """W_t[i][r, y] (B, n, n + 1, C) from the log weights (B, n, C, 2 C + Q)."""
    weights: Tensor = _TopWeights.apply(logits, num_states)
    return weights


class _TopWeights(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, num_states: int) -> Tensor:
        ctx.inner = _inner_weights(logits, num_states)
        weights = ctx.inner.top_weights()
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (weights,) = ctx.saved_tensors
        return _backward(ctx.inner, weights, grad), None


class _Exponents:
    """Exponents of gamma[i -> t] at [b, i + 1, t], of gamma'[k -> t] at [b, k, t], of alpha[i] at [b, i + 1].

    The methods return factors: 2 to the power of an exponent less that of the sum in which it is a summand.
    """

    def __init__(self, batch_size: int, steps: int, like: Tensor) -> None:
        self.gamma = like.new_full((batch_size, steps, steps), DEAD)
        self.gamma[:, 0, 0] = 0
        self.popped = torch.full_like(self.gamma, DEAD)
        self.alpha = like.new_zeros(batch_size, steps + 1)

    def append(self, t: int, column: ColumnExponents, alpha: Tensor) -> None:
        self.gamma[:, : t + 1, t] = column.gamma
        self.popped[:, : t - 1, t] = column.popped
        self.alpha[:, t + 1] = alpha

    def of_top(self, t: int) -> Tensor:
        """alpha[i] gamma[i -> t] in alpha[t], (B, t + 1)."""
        return power_of_two(self.gamma[:, : t + 1, t] + self.alpha[:, : t + 1] - self.alpha[:, t + 1, None])

    def of_replaced(self, t: int) -> Tensor:
        """gamma[i -> t - 1] in gamma[i -> t], (B, t)."""
        return power_of_two(self.gamma[:, :t, t - 1] - self.gamma[:, :t, t])

    def of_popped(self, t: int) -> Tensor:
        """gamma[k -> t - 1] in gamma'[k -> t], (B, t - 1)."""
        return power_of_two(self.gamma[:, 1:t, t - 1] - self.popped[:, : t - 1, t])

    def of_pops_at(self, t: int) -> Tensor:
        """gamma[i -> k] gamma'[k -> t] in gamma[i -> t] for i = -1..t-3 and k = 0..t-2, (B, t - 1, t - 1)."""
        gamma = self.gamma[:, : t - 1]
        return power_of_two(gamma[:, :, : t - 1] + self.popped[:, None, : t - 1, t] - gamma[:, :, t, None])

    def of_pops_to(self, k: int) -> Tensor:
        """gamma[i -> k] gamma'[k -> t] in gamma[i -> t], i = -1..k-1, t = k+2..n, (B, k + 1, n - k - 1)."""
        gamma = self.gamma[:, : k + 1]
        return power_of_two(gamma[:, :, k, None] + self.popped[:, None, k, k + 2 :] - gamma[:, :, k + 2 :])


class _InnerWeights:
    """All inner weights, which the backward pass needs: columns t = 0..n with rows i = -1..t-1.

    Attributes:
        transitions: Delta_t up to a positive factor for each step, (B, n, C, 2 C + Q).
        columns: gamma[. -> t], (B, t + 1, C, C), in a list.
        blocks: the same as blocks, (B * S, (n + 1) Q, (n + 1) C).
        popped: gamma'[k -> t] at index [(b, y), (t, r), (k, u)], (B * S, (n + 1) Q, (n + 1) Q).
        alpha: alpha[i] at index [b, i + 1], (B, n + 2, C).
        tops: what Eqs. 27 and 29 give for t = 1..n.
        exponents: None if all are 0.
    """

    def __init__(self, transitions: Tensor, num_states: int, plain: bool) -> None:
        batch_size, length, size, _ = transitions.shape
        steps = length + 1
        self.size, self.num_states, self.num_symbols = size, num_states, size // num_states
        self.transitions = transitions.clone()
        start = transitions.new_zeros(batch_size, 1, size, size)
        start[:, :, 0, 0] = 1  # Eq. 21
        self.columns = [start]
        self.blocks = transitions.new_zeros(batch_size * self.num_symbols, steps * num_states, steps * size)
        self.store(self.blocks, start, 0)
        self.popped = self.blocks.new_zeros(*self.blocks.shape[:2], steps * num_states)
        self.alpha = transitions.new_zeros(batch_size, steps + 1, size)
        self.alpha[:, :2, 0] = 1  # Eq. 23
        self.tops: list[Top] = []
        self.exponents = None if plain else _Exponents(batch_size, steps, transitions)
        for t in range(1, steps):
            self._append(t)

    def top_weights(self) -> Tensor:
        """W_t[i][r, y], (B, n, n + 1, C)."""
        batch_size, length = self.transitions.shape[:2]
        weights = self.alpha.new_zeros(batch_size, length, length + 1, self.size)
        for t, top in enumerate(self.tops, 1):
            weights[:, t - 1, : t + 1] = top.weights
        return weights

    def stayed_in_window(self) -> bool:
        """Whether plain numbers were exact."""
        lower, upper = _PLAIN_WINDOW
        for x in (self.blocks, self.popped, self.alpha):
            smallest, largest = torch.where(x == 0, 1, x).aminmax()
            if not (smallest >= lower and largest <= upper):
                return False
        return True

    def part(self, blocks: Tensor, columns: slice, rows: int) -> Tensor:
        """The ``columns`` of ``blocks``, a slice of times, with the rows i = -1..rows-2."""
        num_states = self.num_states
        return blocks[:, columns.start * num_states : columns.stop * num_states, : rows * self.size]

    def popped_part(self, times: slice, columns: slice) -> Tensor:
        """gamma'[k -> t] for t in ``times`` and k in ``columns``."""
        num_states = self.num_states
        rows = self.popped[:, times.start * num_states : times.stop * num_states]
        return rows[:, :, columns.start * num_states : columns.stop * num_states]

    def store(self, blocks: Tensor, column: Tensor, t: int) -> None:
        """Copy column t, (B, t + 1, C, C), to ``blocks``."""
        source = as_blocks(column, self.num_states)
        self.part(blocks, slice(t, t + 1), t + 1).view(source.shape).copy_(source)

    def clean(self, grad: Tensor, weight: Tensor) -> None:
        """Set a gradient to 0 where the ``weight`` is 0, and where it is too large for a number.

        No run passes where the weight is 0: the derivative has no effect there, and can be very large. Elsewhere it
        can if log weights are very far apart.
        """
        grad.masked_fill_(weight == 0, 0)
        if self.exponents is not None:
            grad.nan_to_num_(0, 0, 0)

    def _append(self, t: int) -> None:
        earlier = self.part(self.blocks, slice(0, t - 1), t - 1)
        alpha = self.alpha[:, : t + 1]
        occurs = alpha[:, -1] > 0
        transitions = self.transitions[:, t - 1]
        if self.exponents is None:
            if t > 1:
                transitions /= self.tops[-1].total[:, None, None]  # This keeps alpha near 1.
            column = next_column(self.columns[-1], earlier, transitions, occurs)
            top = read_top(column.gamma, alpha)
        else:
            column, exponents = next_column_with_exponents(
                self.columns[-1], earlier, self.exponents.gamma[:, :t, :t], transitions, occurs
            )
            top, alpha_exponent = read_top_with_exponents(
                column.gamma, alpha, exponents.gamma + self.exponents.alpha[:, : t + 1]
            )
            self.exponents.append(t, exponents, alpha_exponent)
        self.columns.append(column.gamma)
        self.store(self.blocks, column.gamma, t)
        self.popped_part(slice(t, t + 1), slice(0, t - 1)).copy_(column.popped)
        self.alpha[:, t + 1] = top.alpha
        self.tops.append(top)


def _inner_weights(logits: Tensor, num_states: int) -> _InnerWeights:
    """The inner weights, without exponents where that is exact."""
    transitions, difference = _exponentiate(logits)
    undefined = math.isnan(difference)
    if undefined or difference <= PLAIN_RANGE:
        inner = _InnerWeights(transitions, num_states, plain=True)
        if undefined or inner.stayed_in_window():
            return inner
    return _InnerWeights(transitions, num_states, plain=False)


def _exponentiate(logits: Tensor) -> tuple[Tensor, float]:
    """Delta_t up to a factor for each step, and how far a finite log weight is below the largest, at most."""
    if logits.numel() == 0:
        return logits, math.inf
    relative = relative_to_largest(logits)
    lowest = float(relative.amin())
    if lowest == -torch.inf:
        lowest = float(torch.where(relative == -torch.inf, 0, relative).amin())
    if lowest < LOWEST_LOG:
        relative = lift(relative)
    return relative.exp_(), -lowest


def _backward(inner: _InnerWeights, weights: Tensor, grad: Tensor) -> Tensor:
    """The gradient of the log weights, given W and its gradient.

    ``outer`` is 2^e dL/dgamma[i -> t], for one t, with the exponent e of gamma[i -> t].
    """
    size, exponents = inner.size, inner.exponents
    outer_blocks = torch.zeros_like(inner.blocks)
    grad_alpha = torch.zeros_like(inner.alpha)
    grad_logits = torch.empty_like(inner.transitions)
    grad_top = _softmax_gradient(weights, grad)
    from_next_column = None
    for t in range(weights.shape[1], 0, -1):
        gamma, last = inner.columns[t], inner.columns[t - 1]
        transitions = inner.transitions[:, t - 1, :, size:]
        top = inner.tops[t - 1]
        beta = grad_top[:, t - 1, : t + 1] / top.total[:, None, None] + grad_alpha[:, t + 1, None]
        inner.clean(beta, top.weights)
        in_top = None if exponents is None else exponents.of_top(t)
        outer = times(inner.alpha[:, : t + 1], in_top)[..., None] * beta[:, :, None]
        grad_alpha[:, : t + 1] += times(torch.matmul(gamma, beta[..., None])[..., 0], in_top)
        if from_next_column is not None:
            outer += from_next_column
        outer += _from_pops_to(inner, outer_blocks, t)
        inner.clean(outer, gamma)
        inner.store(outer_blocks, outer, t)
        moved = _before_transition(inner, outer, outer_blocks, t)
        grad_logits[:, t - 1, :, :size] = gamma[:, t] * outer[:, t]
        grad_logits[:, t - 1, :, size:] = transitions * torch.bmm(last.flatten(1, 2).transpose(1, 2), moved)
        from_next_column = torch.bmm(moved, transitions.transpose(1, 2)).view_as(last)
    return grad_logits


def _from_pops_to(inner: _InnerWeights, outer_blocks: Tensor, k: int) -> Tensor:
    """What the pops of Eq. 24 back to column k, at t = k+2..n, add to its ``outer``, (B, k + 1, C, C)."""
    later = slice(k + 2, len(inner.columns))
    outer = inner.part(outer_blocks, later, k + 1)
    if inner.exponents is not None:
        outer = scale_blocks(outer, inner.exponents.of_pops_to(k), inner.size)
    popped = inner.popped_part(later, slice(k, k + 1))
    return from_blocks(torch.bmm(popped.transpose(1, 2), outer), k + 1, inner.size)


def _before_transition(inner: _InnerWeights, outer: Tensor, outer_blocks: Tensor, t: int) -> Tensor:
    """dL/d(gamma[i -> t - 1] Delta_t) by replacement and pop, with the exponent of gamma[i -> t - 1].

    The result (B, t * C, C + Q) is at index [b, (i + 1, qx), ry or r].
    """
    blocks = inner.part(inner.blocks, slice(0, t - 1), t - 1)
    if inner.exponents is not None:
        blocks = scale_blocks(blocks, inner.exponents.of_pops_at(t), inner.size)
    outer_popped = torch.bmm(inner.part(outer_blocks, slice(t, t + 1), t - 1), blocks.transpose(1, 2))
    inner.clean(outer_popped, inner.popped_part(slice(t, t + 1), slice(0, t - 1)))
    outer_popped = from_popped(outer_popped, inner.size)
    outer = outer[:, :t]
    if inner.exponents is not None:
        outer = times(outer, inner.exponents.of_replaced(t)).clamp(-LARGEST, LARGEST)
        outer_popped = times(outer_popped, inner.exponents.of_popped(t)).clamp(-LARGEST, LARGEST)
    outer_popped = pad(outer_popped, (0, 0, 0, 0, 1, 0))  # Nothing pops the row i = -1.
    return torch.cat([outer, outer_popped], 3).flatten(1, 2)


def _softmax_gradient(weights: Tensor, grad: Tensor) -> Tensor:
    """dL/dx for weights = softmax of x over the last two axes.

    The gradient is centred on that of the largest weight first: where one weight is almost 1, the usual
    formula is a difference of two almost equal numbers.
    """
    weights, grad = weights.flatten(2), grad.flatten(2)
    grad = grad - grad.gather(2, weights.argmax(2, keepdim=True))
    return (grad - (weights * grad).sum(2, keepdim=True)).unflatten(2, (weights.shape[1] + 1, -1))
