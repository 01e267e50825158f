"""The nondeterministic stack with limited memory: gamma[i -> t] = 0 for t - i > D (DuSell and Chiang, 2022).

It takes O(Q^3 S^2 D^2 n) time and O(Q^2 S^2 D n) memory. The fast backends go step by step, as decoding does, since a
step needs no more than the last D columns of inner weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._arguments import computation_dtype
from .._native import buffers, required_library
from .._native.structures import Call, new_call
from .._operators import differentiable_once
from .._units import units_like
from ._log_weights import join_transitions
from ._steps import exact_gradients, exact_readings

Compute = Callable[[Tensor, Tensor, int, int], Tensor]
"""The readings (B, n, C, m) from log weights (B, n, C, 2 C + Q), v_0..v_n (B, n + 1, m), Q and the window D."""


def windowed(
    compute: Compute,
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    return_weights: bool,
    window: int,
) -> tuple[Tensor, Tensor | None]:
    """The readings that ``compute`` finds, and W or None; other arguments as for ``nondeterministic_stack``."""
    batch_size, _, *top = push.shape[:4]
    dtype = computation_dtype(values.dtype)
    logits = join_transitions(push, replace, pop).to(dtype)
    vectors = torch.cat([bottom.expand(batch_size, -1)[:, None], values], 1).to(dtype)
    readings = compute(logits, vectors, top[0], window).unflatten(2, top).to(values.dtype)
    if not return_weights:
        return readings, None
    weights = compute(logits, units_like(vectors), top[0], window).unflatten(2, top)
    return readings, weights.movedim(4, 2).to(values.dtype)


def windowed_readings_native(logits: Tensor, vectors: Tensor, num_states: int, window: int) -> Tensor:
    """By the compiled kernels, on the CPU: ``_native/src/nondeterministic_window.h``."""
    readings, *_ = _differentiable_stack(logits, vectors, num_states, window)
    return readings


@torch.library.custom_op("fairseq_stack::windowed_nondeterministic_stack", mutates_args=(), device_types="cpu")
def _stack(logits: Tensor, vectors: Tensor, num_states: int, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The readings, and for the backward pass the columns of all steps, (B, bytes) of uint8, and for which sequences
    float32 and float64 were not precise enough, (B,) each.
    """
    batch_size, length, size, _ = logits.shape
    readings = vectors.new_empty(batch_size, length, size, vectors.shape[2])
    call = _call(logits, vectors, num_states, window)
    columns = buffers.take(batch_size * call.workspace_bytes).view(batch_size, call.workspace_bytes)
    wide, inexact = torch.zeros(2, batch_size, dtype=torch.bool)
    _run(
        "forward", call, 1, logits=logits, values=vectors, readings=readings, workspace=columns,
        wide=wide, inexact=inexact,
    )  # fmt: skip
    if inexact.any():
        readings[inexact] = exact_readings(logits[inexact], vectors[inexact], num_states, window).to(readings.dtype)
    return readings, columns, wide.clone(), inexact.clone()


@_stack.register_fake
def _(logits: Tensor, vectors: Tensor, num_states: int, window: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size, _ = logits.shape
    bytes_of_columns = torch.library.get_ctx().new_dynamic_size()
    return (
        vectors.new_empty(batch_size, length, size, vectors.shape[2]),
        vectors.new_empty(batch_size, bytes_of_columns, dtype=torch.uint8),
        vectors.new_empty(batch_size, dtype=torch.bool),
        vectors.new_empty(batch_size, dtype=torch.bool),
    )


@torch.library.custom_op("fairseq_stack::windowed_nondeterministic_stack_backward", mutates_args=(), device_types="cpu")
def _stack_backward(
    grad: Tensor,
    logits: Tensor,
    vectors: Tensor,
    columns: Tensor,
    wide: Tensor,
    inexact: Tensor,
    num_states: int,
    window: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of the log weights and of the vectors."""
    gradients = torch.empty_like(logits, memory_format=torch.contiguous_format)
    value_gradients = torch.empty_like(vectors, memory_format=torch.contiguous_format)
    _run(
        "backward", _call(logits, vectors, num_states, window), 2, cotangents=grad, workspace=columns,
        wide=wide, inexact=inexact, logit_gradients=gradients, value_gradients=value_gradients,
    )  # fmt: skip
    if inexact.any():
        exact = exact_gradients(grad[inexact], logits[inexact], vectors[inexact], num_states, window)
        gradients[inexact], value_gradients[inexact] = (x.to(grad.dtype) for x in exact)
    return gradients, value_gradients


@_stack_backward.register_fake
def _(grad: Tensor, logits: Tensor, vectors: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return logits.new_empty(logits.shape), vectors.new_empty(vectors.shape)


_differentiable_stack = differentiable_once("nondeterministic_stack", _stack, _stack_backward, saved=slice(1, None))


def _call(logits: Tensor, vectors: Tensor, num_states: int, window: int) -> Call:
    batch_size, length, size, _ = logits.shape
    is_double = int(logits.dtype == torch.float64)
    sizes = batch_size, length, num_states, size // num_states, vectors.shape[2], window
    call = new_call("nd_window_call", is_double, *sizes)
    call.workspace_bytes, *_ = _sizes(call)
    return call


def _sizes(call: Call) -> tuple[int, ...]:
    """In bytes: of the columns of a sequence, and of the working memory of both passes."""
    return required_library().sizes("fss_nd_window_sizes", call)


def _run(direction: str, call: Call, scratch: int, **arrays: Tensor) -> None:
    """Run a kernel; arrays are for fields of the call."""
    call.hold(**arrays)
    size = call.num_states * call.num_symbols
    remembered = min(call.window, call.length)
    required_library().run(
        f"fss_nd_window_{direction}",
        call,
        parts=call.sequences,
        work=call.sequences * call.length * call.num_states * (remembered * size) ** 2 // 2,
        scratch_bytes=_sizes(call)[scratch],
    )
