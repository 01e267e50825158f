"""The nondeterministic stack by the compiled kernels, on CPUs: ``_native/src/nondeterministic.h`` has the algorithm.

The kernels work with real numbers and an exponent for each block of inner weights. That makes float32 precise enough as
long as the inner weights within a block are not too far apart, which the kernels find out; the other sequences of a
batch are computed in float64. What a sequence is computed in depends on nothing but its own log weights.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .._arguments import computation_dtype
from .._native import Library, buffers, library
from ._columns import lift, relative_to_largest

# Float32 is tried if the log weights of each step are at most this far apart. In float64, if they are farther apart
# than CAREFUL_RANGE or some are -inf, the inner weights of configurations that are out of reach are left out.
NARROW_RANGE = 55.0
CAREFUL_RANGE = 230.0


def nondeterministic_stack_native(
    push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor, *, return_weights: bool
) -> Tensor | tuple[Tensor, Tensor]:
    """The readings; arguments and results as for ``nondeterministic_stack``, on the CPU."""
    top = push.shape[2:4]
    dtype = computation_dtype(values.dtype)
    logits = torch.cat([x.flatten(2, 3).flatten(3).to(dtype) for x in (push, replace, pop)], -1)
    vectors = torch.cat([bottom.to(dtype).expand(len(values), -1)[:, None], values.to(dtype)], 1)
    readings, weights, _, _ = _stack(logits, vectors, push.shape[2])
    readings = readings.unflatten(2, top).to(values.dtype)
    if not return_weights:
        return readings
    return readings, weights.unflatten(2, top).movedim(4, 2).to(values.dtype)


@torch.library.custom_op("fairseq_stack::nondeterministic_stack", mutates_args=(), device_types="cpu")
def _stack(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The stack for log weights (B, n, C, 2 C + Q) and v_0..v_n (B, n + 1, m).

    Returns:
        r_t[(r, y)] at index [b, t - 1, (r, y)], (B, n, C, m); W_t[i][(r, y)] at [b, t - 1, (r, y), i + 1], (B, n, C,
        n + 1); and for the backward pass the inner weights, of uint8, and which sequences took float64, (B,).
    """
    batch_size, length, size, _ = logits.shape
    weights = logits.new_empty(batch_size, length, size, length + 1)
    workspace = buffers.take(batch_size * _room(length, num_states, size))
    if logits.numel() == 0:
        return _weigh(weights, vectors), weights, workspace, torch.zeros(batch_size, dtype=torch.bool)
    relative = relative_to_largest(logits)
    masked, apart = _spread(relative)
    wide = masked | (apart > NARROW_RANGE) if logits.dtype == torch.float32 else torch.ones_like(masked)
    if not wide.all():
        narrow = _group(relative, ~wide, torch.float32, num_states)
        inexact = torch.empty(len(narrow.places), dtype=torch.bool)
        own = weights.new_empty(len(narrow.places), *weights.shape[1:])
        careful = torch.zeros_like(inexact)
        _call("forward", narrow, workspace, weights=own, careful=careful, inexact=inexact)
        weights = narrow.put(own, weights)
        wide[narrow.places[inexact]] = True
    if wide.any():
        group = _group(relative, wide, torch.float64, num_states)
        careful = (masked | (apart > CAREFUL_RANGE))[group.places]
        own = weights.new_empty(len(group.places), *weights.shape[1:], dtype=torch.float64)
        _call("forward", group, workspace, weights=own, careful=careful, inexact=torch.empty_like(careful))
        weights = group.put(own, weights)
    return _weigh(weights, vectors), weights, workspace, wide


@_stack.register_fake
def _(logits: Tensor, vectors: Tensor, num_states: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size, _ = logits.shape
    return (
        vectors.new_empty(batch_size, length, size, vectors.shape[2]),
        logits.new_empty(batch_size, length, size, length + 1),
        logits.new_empty(batch_size * _room(length, num_states, size), dtype=torch.uint8),
        logits.new_empty(batch_size, dtype=torch.bool),
    )


@torch.library.custom_op("fairseq_stack::nondeterministic_stack_backward", mutates_args=(), device_types="cpu")
def _stack_backward(
    grad_readings: Tensor,
    grad_weights: Tensor | None,
    logits: Tensor,
    vectors: Tensor,
    weights: Tensor,
    workspace: Tensor,
    wide: Tensor,
    num_states: int,
) -> tuple[Tensor, Tensor]:
    """The gradients of the log weights and of the vectors, given what ``_stack`` got and returned."""
    with torch.autocast("cpu", enabled=False):
        grad_readings = grad_readings.flatten(1, 2)
        grad_vectors = _product(weights.flatten(1, 2).transpose(1, 2), grad_readings)
        cotangents = torch.bmm(grad_readings, vectors.transpose(1, 2)).view_as(weights)
    if grad_weights is not None:
        cotangents += grad_weights
    gradients = torch.empty_like(logits, memory_format=torch.contiguous_format)
    if logits.numel() == 0:
        return gradients, grad_vectors
    relative = relative_to_largest(logits)
    for dtype, rows in ((torch.float32, ~wide), (torch.float64, wide)):
        if rows.any():
            group = _group(relative, rows, dtype, num_states)
            own = torch.empty_like(group.transitions)
            _call(
                "backward", group, workspace,
                weights=group.get(weights), cotangents=group.get(cotangents), gradients=own,
            )  # fmt: skip
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
    wide: Tensor,
    num_states: int,
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(logits, memory_format=torch.contiguous_format), vectors.new_empty(vectors.shape)


def _setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, int], output: tuple[Tensor, ...]) -> None:
    logits, vectors, ctx.num_states = inputs
    ctx.save_for_backward(logits, vectors, *output[1:])
    ctx.set_materialize_grads(False)


def _backward(
    ctx: Any, grad_readings: Tensor | None, grad_weights: Tensor | None, *_: None
) -> tuple[Tensor | None, Tensor | None, None]:
    logits, vectors, weights, workspace, wide = ctx.saved_tensors
    if grad_readings is None:
        if grad_weights is None:
            return None, None, None
        grad_readings = vectors.new_zeros(*weights.shape[:3], vectors.shape[2])
    gradients = _stack_backward(grad_readings, grad_weights, logits, vectors, weights, workspace, wide, ctx.num_states)
    return *gradients, None


def _refuse(ctx: Any, *grads: Tensor) -> None:
    raise RuntimeError("nondeterministic_stack: only backend='reference' has second derivatives")


_stack.register_autograd(_backward, setup_context=_setup_context)
_stack_backward.register_autograd(_refuse)


def _weigh(weights: Tensor, vectors: Tensor) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        readings = _product(weights.flatten(1, 2), vectors)
    return readings.unflatten(1, weights.shape[1:3])


def _product(a: Tensor, b: Tensor) -> Tensor:
    """``torch.bmm(a, b)``, which is several times as fast the other way round if ``b`` has few columns."""
    if b.shape[2] >= 32:
        return torch.bmm(a, b)
    return torch.bmm(b.transpose(1, 2), a.transpose(1, 2)).transpose(1, 2).contiguous()


class _Group(NamedTuple):
    """The sequences of a batch that are computed in one dtype.

    Attributes:
        places: theirs in the batch.
        transitions: exp of their log weights up to a factor for each step, (sequences, n, C, 2 C + Q), in the dtype.
        num_states: Q.
        all: whether there are no other sequences.
    """

    places: Tensor
    transitions: Tensor
    num_states: int
    all: bool

    def get(self, batch: Tensor) -> Tensor:
        """The group's rows of a tensor for all sequences, in its dtype, contiguous."""
        return (batch if self.all else batch[self.places]).to(self.transitions.dtype).contiguous()

    def put(self, own: Tensor, batch: Tensor) -> Tensor:
        """``batch`` with the group's rows set to these; may or may not be changed in place."""
        own = own.to(batch.dtype)
        return own if self.all else batch.index_copy_(0, self.places, own)


def _group(relative: Tensor, rows: Tensor, dtype: torch.dtype, num_states: int) -> _Group:
    """The sequences with ``rows`` (B,), from log weights less the largest of each step, (B, n, C, 2 C + Q)."""
    everything = bool(rows.all())
    own = (relative if everything else relative[rows]).to(dtype)
    transitions = torch.exp(lift(own) if dtype == torch.float64 else own)
    return _Group(rows.nonzero()[:, 0], transitions.contiguous(), num_states, everything)


def _spread(relative: Tensor) -> tuple[Tensor, Tensor]:
    """For each sequence: whether some log weight is -inf, and how far the others are below the step's largest."""
    lowest = relative.flatten(1).amin(1)
    masked = lowest == -torch.inf
    if masked.any():
        lowest = torch.where(relative == -torch.inf, 0, relative).flatten(1).amin(1)
    return masked, -lowest


def _room(length: int, num_states: int, size: int) -> int:
    """At least the bytes of one sequence's workspace, a multiple of 64; ``length`` may be symbolic."""
    return 64 * ((length + 16) * (length + 4) * (size + 1) * (size + num_states + 1) // 16 + 16)


class _Call(ctypes.Structure):
    """struct nd_call."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("sequences", "length", "num_states", "num_symbols")),
        *((name, ctypes.c_void_p) for name in ("careful", "transitions", "weights", "cotangents", "gradients")),
        *((name, ctypes.c_void_p) for name in ("workspace", "places")),
        ("workspace_bytes", ctypes.c_int64),
        ("inexact", ctypes.c_void_p),
    )


def _call(direction: str, group: _Group, workspace: Tensor, **arrays: Tensor) -> None:
    """Run a kernel for a group; ``arrays`` are contiguous tensors for fields of struct nd_call."""
    compiled = library()
    if compiled is None:
        raise RuntimeError("nondeterministic_stack: the compiled kernels are not there any more")
    sequences, length, size, _ = group.transitions.shape
    num_symbols = size // group.num_states
    threads = min(torch.get_num_threads(), sequences)
    is_double = group.transitions.dtype == torch.float64
    room = _room(length, group.num_states, size)
    workspace_bytes, *scratch_sizes = _sizes(compiled, is_double, length, group.num_states, num_symbols)
    if workspace_bytes > room:
        raise RuntimeError(f"nondeterministic_stack: {workspace_bytes} bytes do not fit into {room}")
    scratch_bytes = scratch_sizes[direction == "backward"]
    scratch = buffers.take(threads * scratch_bytes)
    arrays |= {"transitions": group.transitions, "workspace": workspace, "places": group.places}
    call = _Call(
        sequences, length, group.num_states, num_symbols, workspace_bytes=room,
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
