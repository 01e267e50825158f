"""The nondeterministic stack by Triton kernels, for GPUs: ``_triton/nondeterministic/`` has the kernels.

Everything is computed in float64, in real numbers with an exponent for each cell of tiles. The kernels notice numbers
that are so far apart that something may be lost; those sequences are computed again in logarithms (``_steps.py``).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._operators import differentiable_once
from .._triton.nondeterministic.sizes import Inner, Sizes
from .._undefined import finite, from_then_on, marks_of
from .._units import units_like
from . import _bands
from ._column_gradient import through_softmax
from ._log_weights import defined, evened, join_transitions, relative_to_largest, spread_of
from ._steps import exact_gradients, exact_readings

Outputs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]

WIDEST_RANGE = 138.0  # of the log weights of one step: at most 2^199 apart, see LARGEST_MANTISSA of the kernels


def nondeterministic_stack_triton(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """The readings, and W or None; arguments as for ``nondeterministic_stack``."""
    top = push.shape[2:4]
    vectors = torch.cat([bottom.double().expand(len(values), -1)[:, None], values.double()], 1)
    weights, marks = _weights_and_marks(join_transitions(push, replace, pop), top[0], None)
    readings = torch.bmm(weights.flatten(1, 2), finite(vectors)).unflatten(1, weights.shape[1:3])
    readings = (readings + _marks_of_readings(marks, vectors)).unflatten(2, top).to(values.dtype)
    if not return_weights:
        return readings, None
    return readings, (weights + marks[..., None]).unflatten(2, top).movedim(4, 2).to(values.dtype)


def windowed_readings_triton(logits: Tensor, vectors: Tensor, num_states: int, window: int) -> Tensor:
    """With limited memory; arguments and result as for ``window.Compute``."""
    sizes = _sizes(logits, num_states, window)
    weights, marks = _weights_and_marks(logits, num_states, window)
    readings = _bands.readings(weights, finite(vectors).double(), sizes)
    return (readings + _marks_of_readings(marks, vectors)).to(vectors.dtype)


def _weights_and_marks(logits: Tensor, num_states: int, window: int | None) -> tuple[Tensor, Tensor]:
    """W, and marks of all readings of a step, (B, n, 1)."""
    logits, marks = defined(logits.double())
    weights, *_ = _differentiable_weights(logits, num_states, window)
    return weights, from_then_on(marks)[:, :, None]


def _marks_of_readings(marks: Tensor, vectors: Tensor) -> Tensor:
    """With the marks of v_0..v_n, (B, n, 1, m)."""
    return (marks + from_then_on(marks_of(vectors))[:, 1:])[:, :, None]


@torch.library.custom_op("fairseq_stack::nondeterministic_stack_triton", mutates_args=())
def _weights(logits: Tensor, num_states: int, window: int | None) -> Outputs:
    """W_t[i][y] at index [b, t - 1, y, i + 1], (B, n, C, n + 1), for log weights (B, n, C, 2 C + Q) in float64.

    With a window, only what it contains, as ``_bands.py`` says. In a CUDA graph, W is NaN where float64 is not precise
    enough.

    Returns:
        :class:`Inner`, for the backward pass.
    """
    if logits.numel() == 0:
        return _outputs(logits, num_states, window)
    from .._triton.nondeterministic import launch

    sizes = _sizes(logits, num_states, window)
    relative = relative_to_largest(logits)
    inexact = spread_of(relative).range > WIDEST_RANGE
    transitions = torch.where(inexact[:, None, None, None], 0, relative).exp_()
    with torch.cuda.device_of(logits):  # Triton launches kernels on the current device
        inner = launch.inner_weights(evened(transitions).contiguous(), sizes)
    inexact |= inner.inexact
    weights = torch.where(inexact[:, None, None, None], torch.nan, inner.weights)
    if not _is_captured(logits) and inexact.any():
        exact = exact_readings(logits[inexact], units_like(logits[inexact], 1), num_states, window)
        weights[inexact] = exact if window is None else _bands.banded(exact, sizes)
    return inner._replace(weights=weights, inexact=inexact)


@_weights.register_fake
def _outputs(logits: Tensor, num_states: int, window: int | None) -> Outputs:
    """Tensors of the right shapes."""
    return _sizes(logits, num_states, window).empty(logits)


@torch.library.custom_op("fairseq_stack::nondeterministic_stack_triton_backward", mutates_args=())
def _weights_backward(
    grad: Tensor,
    logits: Tensor,
    weights: Tensor,
    transitions: Tensor,
    g: Tensor,
    popped: Tensor,
    exponents: Tensor,
    alpha: Tensor,
    alpha_exponents: Tensor,
    inexact: Tensor,
    num_states: int,
    window: int | None,
) -> Tensor:
    """The gradient of the log weights, given what ``_weights`` got and returned: (h) to (m) of the algorithm."""
    if logits.numel() == 0:
        return torch.zeros_like(logits)
    from .._triton.nondeterministic import launch

    sizes = _sizes(logits, num_states, window)
    usable = torch.where(inexact[:, None, None, None], 0, weights)
    inner = Inner(usable, transitions, g, popped, exponents, alpha, alpha_exponents, inexact)
    with torch.cuda.device_of(logits):
        gradient = launch.log_weight_gradients(inner, _centred(usable, grad), sizes)
    gradient = torch.where(inexact[:, None, None, None], torch.nan, gradient)
    if not _is_captured(logits) and inexact.any():
        of_weights = grad[inexact] if window is None else _bands.dense(grad[inexact], sizes)
        units = units_like(logits[inexact], 1)
        gradient[inexact], _ = exact_gradients(of_weights, logits[inexact], units, num_states, window)
    return gradient


@_weights_backward.register_fake
def _(grad: Tensor, logits: Tensor, *_: Any) -> Tensor:
    return logits.new_empty(logits.shape)


def _centred(weights: Tensor, grad: Tensor) -> Tensor:
    """b_t[i, y] of (h); what is not on top of the stack in any run takes no part, whatever its gradient is."""
    occurs = weights > 0
    centred = through_softmax(weights.flatten(2), torch.where(occurs, grad, 0).flatten(2))
    return torch.where(occurs, centred.view_as(grad), 0)


def _is_captured(x: Tensor) -> bool:
    """Whether this becomes a part of a CUDA graph, in which the host cannot read flags."""
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _sizes(logits: Tensor, num_states: int, window: int | None) -> Sizes:
    batch_size, length, top, _ = logits.shape
    return Sizes(batch_size, length, num_states, top // num_states, _tile_size(length, top), window)


def _tile_size(length: int, top: int) -> int:
    return 8 if length < 150 or top > 16 else 16


_differentiable_weights = differentiable_once("nondeterministic_stack", _weights, _weights_backward, saved=slice(None))
