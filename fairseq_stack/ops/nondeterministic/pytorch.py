"""The nondeterministic stack in PyTorch operations, with one loop over time and a hand-written backward pass.

Everything is computed in float64, in real numbers: see ``_columns.py`` for why that is mostly enough, ``_tiles.py`` for
the layout, ``_inner_weights.py`` for the forward pass and ``_gradient.py`` for the backward pass. The inner weights of
a tile of about 10 columns share an exponent. Sequences whose inner weights are too far apart for that go by steps
(``_steps.py``), where each block (i, t) has an exponent of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._operators import differentiable_once, gradients_inside
from .._undefined import finite, from_then_on, marks_of
from .._units import units_like
from ._gradient import gradient_of_log_weights
from ._inner_weights import InnerWeights, Tops
from ._log_weights import EXACT_RANGE, defined, evened, join_transitions, relative_to_largest, spread_of
from ._steps import readings_by_steps
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
) -> tuple[Tensor, Tensor | None]:
    """The readings, and W or None; arguments as for ``nondeterministic_stack``."""
    batch_size, length, num_states, num_symbols = push.shape[:4]
    vectors = torch.cat([bottom.double().expand(batch_size, -1)[:, None], values.double()], 1)
    push, replace = (x.permute(0, 1, 3, 2, 5, 4) for x in (push, replace))
    logits, marks = defined(join_transitions(push, replace, pop.transpose(2, 3)).double())
    marks = from_then_on(marks)[:, :, None]
    weights, *_ = _differentiable_weights(logits, num_states)
    readings = torch.bmm(weights.flatten(1, 2), finite(vectors)).unflatten(1, (length, num_symbols, num_states))
    marks_of_readings = marks + from_then_on(marks_of(vectors))[:, 1:]
    readings = (readings + marks_of_readings[:, :, None, None]).to(values.dtype).transpose(2, 3).contiguous()
    if not return_weights:
        return readings, None
    weights = weights + marks[..., None]
    return readings, weights.unflatten(2, (num_symbols, num_states)).permute(0, 1, 4, 3, 2).to(values.dtype)


def _weights(logits: Tensor, num_states: int) -> tuple[Tensor, ...]:
    """W_t[i][r,y] at [b, t - 1, yr, i + 1], (B, n, C, n + 1), for log weights (B, n, C, 2 C + Q); and for the backward
    pass which sequences have forbidden transitions and which went by steps, (B,), and all tensors.
    """
    batch_size, length, size, _ = logits.shape
    if logits.numel() == 0:
        weights = logits.new_zeros(batch_size, length, size, length + 1)
        return weights, *weights.new_zeros(2, batch_size, dtype=torch.bool)
    inner, masked, apart = _inner_weights(logits, num_states)
    weights = _without_padding(inner.tops.weights, length)
    if apart.any():
        weights = weights.index_put((apart,), _weights_by_steps(logits[apart], num_states))
    return weights, masked, apart, *inner.tops.by_batch(), *inner.tiles.by_batch()


def _weights_backward(grad: Tensor, logits: Tensor, masked: Tensor, apart: Tensor, *saved_and_states: Any) -> Tensor:
    *saved, num_states = saved_and_states
    if grad.numel() == 0:
        return torch.zeros_like(logits)
    tops, tiles = Tops.from_batch(saved[: len(Tops._fields)]), Tiles.from_batch(saved[len(Tops._fields) :])
    gradient = gradient_of_log_weights(tiles, tops, grad, bool(masked.any()))
    if apart.any():
        gradient = gradient.index_put((apart,), _gradient_by_steps(grad[apart], logits[apart], num_states))
    return gradient


_differentiable_weights = differentiable_once(
    "nondeterministic_stack", _weights, _weights_backward, saved=slice(1, None)
)


def _without_padding(x: Tensor, length: int) -> Tensor:
    """Points (B, K, T, C, K, T) to t = 1..n and i = -1..n-1, (B, n, C, n + 1)."""
    return x.flatten(4).flatten(1, 2)[:, 2 : length + 2, :, : length + 1]


def _inner_weights(logits: Tensor, num_states: int) -> tuple[InnerWeights, Tensor, Tensor]:
    """The inner weights; and which sequences have forbidden transitions, and which do not fit into tiles, (B,)."""
    relative = relative_to_largest(logits)
    spread = spread_of(relative)
    apart = spread.range > EXACT_RANGE
    transitions = torch.where(apart[:, None, None, None], 0, relative).exp_()
    ranges = torch.where(apart, 0, spread.range)
    # Tiles are as large as they may be, given how far the log weights of a step differ.
    tile_size = min(_fastest_tile_size(transitions), int(_RANGE_OF_TILE / max(1.0, float(ranges.amax()))))
    inner = InnerWeights(in_tiles(evened(transitions), tile_size), num_states)
    return inner, spread.masked, apart | ~inner.fit_together(ranges)


def _fastest_tile_size(transitions: Tensor) -> int:
    """Measured. Large tiles make few launches, but leave more work to the steps, which are slow on a CPU."""
    if transitions.is_cuda:
        return 32
    return 8 if transitions.shape[1] < 38 else 12


def _weights_by_steps(logits: Tensor, num_states: int) -> Tensor:
    """What ``_weights`` returns first."""
    size = logits.shape[2]
    swapped = _swapped(size, num_states, logits.device)
    pops = torch.arange(2 * size, logits.shape[3], device=logits.device)
    logits = logits[:, :, swapped][..., torch.cat([swapped, size + swapped, pops])]
    return readings_by_steps(logits, units_like(logits, 1), num_states, None)[:, :, swapped.argsort()]


def _swapped(size: int, num_states: int, device: torch.device) -> Tensor:
    """The number x Q + q of each configuration q S + x."""
    return torch.arange(size, device=device).view(-1, num_states).t().flatten()


def _gradient_by_steps(grad: Tensor, logits: Tensor, num_states: int) -> Tensor:
    """The gradient of ``_weights_by_steps``."""
    (gradient,) = gradients_inside(partial(_weights_by_steps, num_states=num_states), [logits], grad)
    return gradient
