"""The nondeterministic stack by the compiled kernels, on CPUs: ``_native/src/nondeterministic*.h`` have the algorithm.

The kernels work with real numbers and an exponent for each block of inner weights. That makes float32 precise enough as
long as the inner weights within a block are not too far apart, which the kernels check; the other sequences of a
batch are computed in float64. Those for which that is not enough either, which they check as well, are computed in
logarithms (``_steps.py``), which is slow. How a sequence is computed depends only on its own log weights.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from .._arguments import computation_dtype, without_autocast
from .._native import buffers, crew_size, required_library
from .._native.structures import new_call
from .._operators import differentiable_once
from .._undefined import finite, from_then_on, marks_of
from .._units import units_like
from ._log_weights import join_transitions
from ._steps import exact_gradients, exact_readings


def nondeterministic_stack_native(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    return_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    """The readings, and W or None; arguments as for ``nondeterministic_stack``, on the CPU."""
    top = push.shape[2:4]
    dtype = computation_dtype(values.dtype)
    vectors = torch.cat([bottom.to(dtype).expand(len(values), -1)[:, None], values.to(dtype)], 1)
    logits = join_transitions(push, replace, pop).to(dtype)
    readings, weights, *_ = _differentiable_stack(logits, vectors, top[0])
    readings = readings.unflatten(2, top).to(values.dtype)
    if not return_weights:
        return readings, None
    return readings, weights.unflatten(2, top).movedim(4, 2).to(values.dtype)


@torch.library.custom_op("fairseq_stack::nondeterministic_stack", mutates_args=(), device_types="cpu")
def _stack(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The stack for log weights (B, n, C, 2 C + Q) and v_0..v_n (B, n + 1, m), by (a)-(e) of ``docs/algorithm.md``.

    Returns:
        r_t[(r, y)] at index [b, t - 1, (r, y)], (B, n, C, m); W_t[i][(r, y)] at [b, t - 1, (r, y), i + 1], (B, n, C,
        n + 1); and for the backward pass the inner weights, of uint8, and for which sequences float32 and float64 were
        not precise enough, (B,) each.
    """
    batch_size, length, size, _ = logits.shape
    weights = logits.new_empty(batch_size, length, size, length + 1)
    workspace = buffers.take(batch_size * _room(length, num_states, size))
    wide, inexact = torch.zeros(batch_size, dtype=torch.bool), torch.zeros(batch_size, dtype=torch.bool)
    _call(
        "forward", num_states, logits=logits, weights=weights, workspace=workspace, wide=wide, inexact=inexact,
    )  # fmt: skip
    if inexact.any():
        exact = exact_readings(logits[inexact], units_like(logits[inexact], 1), num_states, None)
        weights[inexact] = exact.to(weights.dtype)
    with without_autocast(torch.device("cpu")):
        readings = _product(weights.flatten(1, 2), finite(vectors)).unflatten(1, weights.shape[1:3])
    readings += from_then_on(marks_of(vectors))[:, 1:, None]
    return readings, weights, workspace, wide, inexact


@_stack.register_fake
def _(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size, _ = logits.shape
    return (
        vectors.new_empty(batch_size, length, size, vectors.shape[2]),
        logits.new_empty(batch_size, length, size, length + 1),
        logits.new_empty(batch_size * _room(length, num_states, size), dtype=torch.uint8),
        logits.new_empty(batch_size, dtype=torch.bool),
        logits.new_empty(batch_size, dtype=torch.bool),
    )


@torch.library.custom_op("fairseq_stack::nondeterministic_stack_backward", mutates_args=(), device_types="cpu")
def _stack_backward(
    grad_readings: Tensor | None,
    grad_weights: Tensor | None,
    logits: Tensor,
    vectors: Tensor,
    weights: Tensor,
    workspace: Tensor,
    wide: Tensor,
    inexact: Tensor,
    num_states: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of log weights and vectors, given what ``_stack`` got and returned: (g)-(m) of
    ``docs/algorithm.md``.
    """
    if grad_readings is None:
        grad_readings = vectors.new_zeros(*weights.shape[:3], vectors.shape[2])
    undefined = _undefined(vectors, weights)
    used = None
    if undefined.any():
        used = ((grad_readings != 0) & undefined[:, :, None]).flatten(1).any(1)
        if grad_weights is not None:
            used |= ((grad_weights != 0) & weights.isnan()).flatten(1).any(1)
        vectors, weights = finite(vectors), finite(weights)
    with without_autocast(torch.device("cpu")):
        grad_readings = grad_readings.flatten(1, 2)
        # From the last step backwards: W is largest soon after a push, and rounding errors are smaller if that is added
        # last.
        grad_vectors = _product(weights.flatten(1, 2).flip(1).transpose(1, 2), grad_readings.flip(1))
        cotangents = torch.bmm(grad_readings, vectors.transpose(1, 2)).view_as(weights)
    if grad_weights is not None:
        cotangents += grad_weights
    gradient = logits.new_empty(logits.shape)
    _call(
        "backward", num_states, logits=logits, weights=weights, workspace=workspace, wide=wide, inexact=inexact,
        cotangents=cotangents, logit_gradients=gradient,
    )  # fmt: skip
    if inexact.any():
        units = units_like(logits[inexact], 1)
        exact, _ = exact_gradients(cotangents[inexact], logits[inexact], units, num_states, None)
        gradient[inexact] = exact.to(gradient.dtype)
    if used is not None:
        gradient[used] = grad_vectors[used] = torch.nan
    return gradient, grad_vectors


def _undefined(vectors: Tensor, weights: Tensor) -> Tensor:
    """Which components of the readings are NaN, (B, n, m): because a vector is, or because the kernel makes W NaN."""
    return from_then_on(marks_of(vectors))[:, 1:].isnan() | weights[:, :, :1, 0].isnan()


@_stack_backward.register_fake
def _(*inputs: Any) -> tuple[Tensor, Tensor]:
    _, _, logits, vectors, *_ = inputs
    return logits.new_empty(logits.shape), vectors.new_empty(vectors.shape)


_differentiable_stack = differentiable_once(
    "nondeterministic_stack", _stack, _stack_backward, saved=slice(1, None), num_cotangents=2
)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """``torch.bmm(a, b)``, in the order that is fast for few columns of ``b`` on processors of AMD and of Intel."""
    if b.shape[2] >= 32:
        return torch.bmm(a, b)
    return torch.bmm(b.transpose(1, 2).contiguous(), a.transpose(1, 2)).transpose(1, 2).contiguous()


def _room(length: int, num_states: int, size: int) -> int:
    """At least the bytes of one sequence's workspace, a multiple of 64, for C configurations; they may be symbolic."""
    return 64 * ((length + 16) * (length + 4) * (size + 1) * (size + num_states + 1) // 16 + 16)


def _most_workers(length: int, lanes: int) -> int:
    """How many threads can work at one sequence at the same time: each has at least two tiles of rows."""
    return max((length // lanes + 1) // 2, 1)


def _call(direction: str, num_states: int, *, logits: Tensor, weights: Tensor, **arrays: Tensor) -> None:
    """Run a kernel; arrays are for fields of struct nd_call."""
    if weights.numel() == 0:
        return
    library = required_library()
    sequences, length, size, _ = logits.shape
    num_symbols = size // num_states
    is_double = int(weights.dtype == torch.float64)
    work = num_states**3 * num_symbols**2 * length**2 * (length + 6) // 6
    crew = crew_size(sequences, work, _most_workers(length, library.vector_bytes // weights.element_size()))
    sizes = (ctypes.c_size_t * 3)()
    library.functions.fss_nd_sizes(library.number, is_double, length, num_states, num_symbols, crew, sizes)
    room = _room(length, num_states, size)
    if sizes[0] > room:
        raise RuntimeError(f"nondeterministic_stack: {sizes[0]} bytes do not fit into {room}")
    call = new_call("nd_call", is_double, sequences, length, num_states, num_symbols, workspace_bytes=room)
    call.hold(logits=logits, weights=weights, **arrays)
    library.run(
        f"fss_nd_{direction}",
        call,
        parts=sequences,
        work=sequences * work,
        scratch_bytes=sizes[2 if direction == "backward" else 1],
        crew=crew,
    )  # fmt: skip
