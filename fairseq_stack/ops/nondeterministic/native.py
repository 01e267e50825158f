"""The nondeterministic stack by the compiled kernels, on CPUs: ``_native/src/nondeterministic.h`` has the algorithm.

The kernels work with real numbers and an exponent for each block of inner weights, so that float32 is precise enough
where the log weights of each step are at most ``NARROW_RANGE`` apart; the other sequences of a batch are computed in
float64. What a sequence is computed in depends on nothing but its own log weights.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import computation_dtype
from .._native import Library, buffers, library
from ._columns import lift, relative_to_largest

NARROW_RANGE = 80.0


def nondeterministic_stack_native(
    push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor, *, return_weights: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """The readings; arguments and results as for ``nondeterministic_stack``, on the CPU."""
    top = push.shape[2:4]
    dtype = computation_dtype(values.dtype)
    logits = torch.cat([x.flatten(2, 3).flatten(3).to(dtype) for x in (push, replace, pop)], -1)
    vectors = torch.cat([bottom.to(dtype).expand(len(values), -1)[:, None], values.to(dtype)], 1)
    readings, weights, _ = _stack(logits, vectors, push.shape[2])
    readings = readings.unflatten(2, top).to(values.dtype)
    if not return_weights:
        return readings
    return readings, weights.unflatten(2, top).movedim(4, 2).to(values.dtype)


@torch.library.custom_op("fairseq_stack::nondeterministic_stack", mutates_args=(), device_types="cpu")
def _stack(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor]:
    """The stack for log weights (B, n, C, 2 C + Q) and v_0..v_n (B, n + 1, m).

    Returns:
        r_t[(r, y)] at index [b, t - 1, (r, y)], (B, n, C, m); W_t[i][(r, y)] at [b, t - 1, (r, y), i + 1], (B, n, C,
        n + 1); and what the backward pass needs, of uint8.
    """
    batch_size, length, size, _ = logits.shape
    weights = logits.new_empty(batch_size, length, size, length + 1)
    workspace = buffers.take(batch_size * _room(length, num_states, size))
    for group in _groups(logits, workspace):
        own = weights.new_empty(len(group.transitions), *weights.shape[1:], dtype=group.dtype)
        _call("forward", group, num_states, weights=own)
        weights = group.put(own, weights)
    return _weigh(weights, vectors), weights, workspace


@_stack.register_fake
def _(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor]:
    batch_size, length, size, _ = logits.shape
    return (
        vectors.new_empty(batch_size, length, size, vectors.shape[2]),
        logits.new_empty(batch_size, length, size, length + 1),
        logits.new_empty(batch_size * _room(length, num_states, size), dtype=torch.uint8),
    )


@torch.library.custom_op("fairseq_stack::nondeterministic_stack_backward", mutates_args=(), device_types="cpu")
def _stack_backward(
    grad_readings: Tensor,
    grad_weights: Tensor | None,
    logits: Tensor,
    vectors: Tensor,
    weights: Tensor,
    workspace: Tensor,
    num_states: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of the log weights and of the vectors, given what ``_stack`` got and returned."""
    with torch.autocast("cpu", enabled=False):
        grad_readings = grad_readings.flatten(1, 2)
        grad_vectors = torch.bmm(weights.flatten(1, 2).transpose(1, 2), grad_readings)
        cotangents = torch.bmm(grad_readings, vectors.transpose(1, 2)).view_as(weights)
    if grad_weights is not None:
        cotangents += grad_weights
    gradients = torch.empty_like(logits, memory_format=torch.contiguous_format)
    for group in _groups(logits, workspace):
        own = torch.empty_like(group.transitions)
        _call(
            "backward", group, num_states, weights=group.get(weights), cotangents=group.get(cotangents), gradients=own
        )
        gradients = group.put(own, gradients)
    return gradients, grad_vectors


@_stack_backward.register_fake
def _(
    grad_readings: Tensor,
    grad_weights: Tensor | None,
    logits: Tensor,
    vectors: Tensor,
    weights: Tensor,
    workspace: Tensor,
    num_states: int,
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(logits, memory_format=torch.contiguous_format), vectors.new_empty(vectors.shape)


def _setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, vectors, ctx.num_states = inputs
    _, weights, workspace = output
    ctx.save_for_backward(logits, vectors, weights, workspace)
    ctx.set_materialize_grads(False)


def _backward(
    ctx: Any, grad_readings: Tensor | None, grad_weights: Tensor | None, _: None
) -> tuple[Tensor | None, Tensor | None, None]:
    logits, vectors, weights, workspace = ctx.saved_tensors
    if grad_readings is None:
        if grad_weights is None:
            return None, None, None
        grad_readings = vectors.new_zeros(*weights.shape[:3], vectors.shape[2])
    gradients = _stack_backward(grad_readings, grad_weights, logits, vectors, weights, workspace, ctx.num_states)
    return *gradients, None


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError("nondeterministic_stack: only backend='reference' has second derivatives")


_stack.register_autograd(_backward, setup_context=_setup_context)
_stack_backward.register_autograd(_refuse)


def _weigh(weights: Tensor, vectors: Tensor) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        readings = torch.bmm(weights.flatten(1, 2), vectors)
    return readings.unflatten(1, weights.shape[1:3])


class _Group(NamedTuple):
    """The sequences of a batch that are computed in one dtype.

    Attributes:
        rows: their places in the batch, None for all.
        dtype: what they are computed in.
        transitions: exp of their log weights up to a factor for each step, (rows, n, C, 2 C + Q).
        careful: whether configurations may be out of reach, (rows,) of uint8.
        workspace: their part of it.
    """

    rows: Tensor | None
    dtype: torch.dtype
    transitions: Tensor
    careful: Tensor
    workspace: Tensor

    def get(self, batch: Tensor) -> Tensor:
        """The group's rows of a tensor for all sequences, in its dtype, contiguous."""
        return (batch if self.rows is None else batch[self.rows]).to(self.dtype).contiguous()

    def put(self, own: Tensor, batch: Tensor) -> Tensor:
        """``batch`` with the group's rows set to these; may or may not be changed in place."""
        own = own.to(batch.dtype)
        return own if self.rows is None else batch.index_copy_(0, self.rows, own)


def _groups(logits: Tensor, workspace: Tensor) -> list[_Group]:
    """The sequences that float32 is precise enough for, and the others."""
    batch_size = len(logits)
    if logits.numel() == 0:
        return []
    relative = relative_to_largest(logits)
    lowest = relative.flatten(1).amin(1)
    masked = lowest == -torch.inf
    if masked.any():
        lowest = torch.where(relative == -torch.inf, 0, relative).flatten(1).amin(1)
    wide = lowest < -NARROW_RANGE
    careful = (masked | wide).to(torch.uint8)
    if logits.dtype == torch.float64 or bool(wide.all()):
        return [_Group(None, torch.float64, lift(relative.double()).exp_(), careful, workspace)]
    if not wide.any():
        return [_Group(None, torch.float32, relative.exp_(), careful, workspace)]
    narrow_rows, wide_rows = (~wide).nonzero()[:, 0], wide.nonzero()[:, 0]
    split = len(narrow_rows) * (len(workspace) // batch_size)
    return [
        _Group(narrow_rows, torch.float32, relative[narrow_rows].exp_(), careful[narrow_rows], workspace[:split]),
        _Group(
            wide_rows, torch.float64, lift(relative[wide_rows].double()).exp_(), careful[wide_rows], workspace[split:]
        ),
    ]


def _room(length: int, num_states: int, size: int) -> int:
    """At least the bytes of one sequence's workspace, a multiple of 64; ``length`` may be symbolic."""
    return 64 * ((length + 16) * (length + 4) * (size + 1) * (size + num_states + 1) // 16 + 16)


class _Call(ctypes.Structure):
    """struct nd_call."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("sequences", "length", "num_states", "num_symbols")),
        *(
            (name, ctypes.c_void_p)
            for name in ("careful", "transitions", "weights", "cotangents", "gradients", "workspace")
        ),
        ("workspace_bytes", ctypes.c_int64),
    )


def _call(direction: str, group: _Group, num_states: int, **arrays: Tensor) -> None:
    """Run a kernel for a group; ``arrays`` are contiguous tensors for fields of struct nd_call."""
    compiled = library()
    if compiled is None:
        raise RuntimeError("nondeterministic_stack: the compiled kernels are not there any more")
    sequences, length, size, _ = group.transitions.shape
    threads = min(torch.get_num_threads(), sequences)
    is_double = group.dtype == torch.float64
    workspace_bytes, *scratch_sizes = _sizes(compiled, is_double, length, num_states, size // num_states)
    scratch_bytes = scratch_sizes[direction == "backward"]
    if workspace_bytes * sequences > len(group.workspace):
        raise RuntimeError(f"nondeterministic_stack: a workspace of {workspace_bytes} bytes has not enough room")
    scratch = buffers.take(threads * scratch_bytes)
    arrays |= {"careful": group.careful, "transitions": group.transitions, "workspace": group.workspace}
    call = _Call(
        sequences, length, num_states, size // num_states, workspace_bytes=workspace_bytes,
        **{name: array.data_ptr() for name, array in arrays.items()},
    )  # fmt: skip
    compiled.functions[f"fss_nd_{direction}"](
        compiled.number, int(is_double), ctypes.byref(call), threads, ctypes.c_void_p(scratch.data_ptr()),
        ctypes.c_size_t(scratch_bytes),
    )  # fmt: skip


def _sizes(compiled: Library, is_double: bool, length: int, num_states: int, num_symbols: int) -> list[int]:
    """Bytes of one sequence's workspace, and of one thread's scratch memory, forward and backward."""
    sizes = (ctypes.c_size_t * 3)()
    compiled.functions.fss_nd_sizes(compiled.number, int(is_double), length, num_states, num_symbols, sizes)
    return [-(-size // 64) * 64 for size in sizes]
