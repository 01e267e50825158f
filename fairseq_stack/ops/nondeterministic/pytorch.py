"""The nondeterministic stack in PyTorch operations, with one loop over time and a hand-written backward pass.

Everything is computed in float64, in real numbers: see ``_columns.py`` for why that is mostly enough, ``_tiles.py`` for
the layout, ``_inner_weights.py`` for the forward pass and ``_gradient.py`` for the backward pass. The sequences for
which it may not be enough are computed again in logarithms (``_exact.py``).

With tiles of about 10 columns, the inner weights of a tile share an exponent. Where they are too far apart for that,
tiles of one column give each block (i, t) an exponent of its own, at the price of many small operations. Both passes
make as many large products as there are pairs of tiles.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._transforms import BackwardPass, DifferentiableOnce
from .._undefined import finite, from_then_on, marks_of
from ._exact import exact_readings
from ._gradient import gradient_of_log_weights
from ._inner_weights import PLAIN_RANGE, InnerWeights, Tops
from ._log_weights import EXACT_RANGE, LOWEST_LOG, defined, join_transitions, relative_to_largest, spread_of
from ._tiles import Tiles, in_tiles

# The inner weights of a tile usually fit together if T times the range of the log weights is below this.
_RANGE_OF_TILE = 1000.0


def nondeterministic_stack_pytorch(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    return_weights: bool,
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
    """W_t[i][r,y] at [b, t - 1, yr, i + 1], (B, n, C, n + 1), from the log weights (B, n, C, 2 C + Q)."""
    weights: Tensor
    weights, *_ = _TopWeights.apply(logits, num_states)
    return weights


class _TopWeights(DifferentiableOnce):
    """Returns the weights; and for the backward pass whether some transitions are forbidden, for which sequences
    float64 is not precise enough, and all tensors.
    """

    op = "nondeterministic_stack"

    @staticmethod
    def forward(logits: Tensor, num_states: int) -> tuple[Tensor | bool, ...]:
        batch_size, length, size, _ = logits.shape
        if logits.numel() == 0:
            weights = logits.new_zeros(batch_size, length, size, length + 1)
            return weights, False, weights.new_zeros(batch_size, dtype=torch.bool)
        inner, masked, inexact = _inner_weights(logits, num_states)
        weights = _without_padding(inner.tops.weights, length)
        if inexact.any():
            weights = weights.index_put((inexact,), _exact_weights(logits[inexact], num_states))
        return weights, masked, inexact, *inner.tops.by_batch(), *inner.tiles.by_batch()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: tuple[Any, ...]) -> None:
        weights, ctx.masked, *saved = output
        logits, ctx.num_states = inputs
        ctx.mark_non_differentiable(*saved)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(logits, weights, *saved)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: None) -> tuple[Tensor | None, None]:
        if grad is None or grad.numel() == 0:
            return None if grad is None else torch.zeros_like(ctx.saved_tensors[0]), None
        (grad_logits,) = _TopWeightsBackward.apply(grad, ctx.masked, ctx.num_states, *ctx.saved_tensors)
        return grad_logits, None


class _TopWeightsBackward(BackwardPass):
    op = _TopWeights.op

    @staticmethod
    def forward(
        grad: Tensor, masked: bool, num_states: int, logits: Tensor, weights: Tensor, inexact: Tensor, *saved: Tensor
    ) -> tuple[Tensor]:
        count = len(Tops._fields)
        gradient = gradient_of_log_weights(
            Tiles.from_batch(saved[count:]), Tops.from_batch(saved[:count]), grad, masked
        )
        if inexact.any():
            exact = _exact_gradient(grad[inexact], logits[inexact], num_states)
            gradient = gradient.index_put((inexact,), exact)
        return (gradient,)


def _without_padding(x: Tensor, length: int) -> Tensor:
    """Points (B, K, T, C, K, T) to t = 1..n and i = -1..n-1, (B, n, C, n + 1)."""
    return x.flatten(4).flatten(1, 2)[:, 2 : length + 2, :, : length + 1]


def _in_large_tiles(transitions: Tensor, difference: float) -> Tensor:
    """The same with T as large as it may be, given how far the log weights of a step differ.

    Delta_t is divided by about the geometric mean of the sums out of each configuration, so that runs keep their
    weight, and by a power of two, so that nothing is rounded.
    """
    sums = transitions.sum(3)
    typical = torch.where(sums == 0, 1, sums).log2().mean(2).round().exp2()
    tile_size = min(_fastest_tile_size(transitions), int(_RANGE_OF_TILE / max(1.0, difference)))
    return in_tiles(transitions / typical[:, :, None, None], tile_size)


def _fastest_tile_size(transitions: Tensor) -> int:
    """Measured. Large tiles make few launches, but leave more work to the steps, which are slow on a CPU."""
    if transitions.is_cuda:
        return 32
    return 8 if transitions.shape[1] < 38 else 12


def _inner_weights(logits: Tensor, num_states: int) -> tuple[InnerWeights, bool, Tensor]:
    """The inner weights, in large tiles where that is exact; whether some transitions are forbidden; and for which
    sequences float64 may not be precise enough, (B,). Those whose weights it cannot represent have others here.
    """
    relative = relative_to_largest(logits)
    spread = spread_of(relative)
    inexact = spread.range > -LOWEST_LOG
    transitions = torch.where(inexact[:, None, None, None], 0, relative).exp_()
    difference, masked = float(torch.where(inexact, 0, spread.range).amax()), bool(spread.masked.any())
    if difference <= PLAIN_RANGE:
        inner = InnerWeights(_in_large_tiles(transitions, difference), num_states, plain=True)
        if inner.fit_together():
            return inner, masked, inexact
    careful = spread.masked | (spread.range > EXACT_RANGE)
    are_known = _leave_out_unused_pushes(transitions, num_states) if bool((transitions == 0).any()) else True
    inner = InnerWeights(in_tiles(transitions, 1), num_states, plain=False)
    if not are_known or (bool(careful.any()) and not inner.are_kept(difference)):
        inexact = inexact | careful
    return inner, True, inexact


def _leave_out_unused_pushes(transitions: Tensor, num_states: int) -> bool:
    """Set pushes onto configurations that cannot be on top to 0, and return whether these are known.

    No run contains them, and their inner weights could outgrow all others.
    """
    length, size = transitions.shape[1:3]
    possible = InnerWeights(_in_large_tiles(transitions.sign(), 1.0), num_states, plain=True)
    unused = possible.tops.alpha.permute(1, 0, 3, 2).flatten(1, 2)[:, 1 : length + 1] <= 0
    transitions[..., :size].masked_fill_(unused[..., None], 0)
    return possible.fit_together()


def _renumbered(logits: Tensor, num_states: int) -> Tensor:
    """Log weights (B, n, C, 2 C + Q) in the order of ``_columns.py``."""
    size = logits.shape[2]
    order = _swapped(size, num_states, logits.device)
    pops = torch.arange(2 * size, logits.shape[3], device=logits.device)
    return logits[:, :, order][..., torch.cat([order, size + order, pops])]


def _swapped(size: int, num_states: int, device: torch.device) -> Tensor:
    """The number x Q + q of each configuration q S + x."""
    return torch.arange(size, device=device).view(-1, num_states).t().flatten()


def _exact_weights(logits: Tensor, num_states: int) -> Tensor:
    """What ``_top_weights`` returns, in logarithms."""
    batch_size, length, size, _ = logits.shape
    units = torch.eye(length + 1, dtype=logits.dtype, device=logits.device).expand(batch_size, -1, -1)
    weights = exact_readings(_renumbered(logits, num_states), units, num_states, None)
    return weights[:, :, _swapped(size, num_states, logits.device).argsort()]


def _exact_gradient(grad: Tensor, logits: Tensor, num_states: int) -> Tensor:
    """The gradient of ``_exact_weights``."""
    logits = logits.detach().requires_grad_()
    with torch.enable_grad():
        weights = _exact_weights(logits, num_states)
    (gradient,) = torch.autograd.grad(weights, logits, grad)
    return gradient
