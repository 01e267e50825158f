"""An LSTM with stacks by the compiled kernels, on the CPU: all steps in one call, ``_native/src/recurrent.h``."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._native import SMALL, buffers, required_library
from .._transforms import refuse_second_derivative
from .reference import stack_lstm_reference
from .stacks import ControlledStack, ControlledSuperposition

_UNLIMITED = 2**31 - 1  # a window or depth that no sequence exceeds
_PUSHES = ("sigmoid", "exponential", "identity", "hidden", "ones")  # as the kernels number them
_TOGETHER = 16  # MOST_TOGETHER of the kernels


def stack_lstm_native(
    gates: Tensor,
    recurrent: Tensor,
    driving: Tensor,
    bias: Tensor,
    reading: Tensor,
    bottoms: Tensor,
    kept: Tensor | None,
    stacks: Sequence[ControlledStack],
) -> Tensor:
    """The hidden states; arguments and result as for ``stack_lstm``."""
    outputs: Tensor
    inexact: Tensor
    numbers = [number for stack in stacks for number in _numbers(stack)]
    outputs, *_, inexact = _stack_lstm(gates, recurrent, driving, bias, reading, bottoms, kept, numbers)
    if torch.compiler.is_compiling() or not inexact.any():
        return outputs
    exact = stack_lstm_reference(
        gates[inexact].double(),
        recurrent.double(),
        driving.double(),
        bias.double(),
        reading.double(),
        bottoms.double(),
        None if kept is None else kept[inexact].double(),
        stacks,
    )
    return outputs.index_put((inexact,), exact.to(outputs.dtype))


@torch.library.custom_op("fairseq_stack::stack_lstm", mutates_args=(), device_types="cpu")
def _stack_lstm(
    gates: Tensor,
    recurrent: Tensor,
    driving: Tensor,
    bias: Tensor,
    reading: Tensor,
    bottoms: Tensor,
    kept: Tensor | None,
    stacks: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The hidden states (B, n, H), and for the backward pass [r_{t-1}; h_{t-1}], (B, n, R + H), the record of each
    sequence, (B, bytes) of uint8, and for which sequences float32 and float64 were not precise enough, (B,) each. The
    hidden states of the last are NaN, and they have no gradients.
    """
    batch_size, length, _ = gates.shape
    outputs = gates.new_empty(batch_size, length, gates.shape[2] // 4)
    remembered = gates.new_empty(batch_size, length, recurrent.shape[1])
    wide, inexact = torch.zeros(batch_size, dtype=torch.bool), torch.zeros(batch_size, dtype=torch.bool)
    if outputs.numel() == 0:
        return outputs, remembered, gates.new_empty(batch_size, 0, dtype=torch.uint8), wide, inexact
    layout = torch.tensor(stacks, dtype=torch.int64)
    num_weights = recurrent.numel() + driving.numel()
    call = _call(gates, layout, num_weights)
    size = batch_size * call.workspace_bytes
    record = torch.empty(size, dtype=torch.uint8) if size < SMALL else buffers.take(size)
    _run(
        "forward", call, num_weights,
        gates=gates, recurrent=recurrent.t(), driving=driving.t(), bias=bias, reading=reading, bottoms=bottoms,
        kept=kept, remembered=remembered, outputs=outputs, workspace=record, wide=wide,
        inexact=inexact,
    )  # fmt: skip
    if inexact.any():
        outputs[inexact], remembered[inexact] = torch.nan, 0
    return outputs, remembered, record.view(batch_size, call.workspace_bytes), wide, inexact


@_stack_lstm.register_fake
def _(gates: Tensor, recurrent: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size = gates.shape
    return (
        gates.new_empty(batch_size, length, size // 4),
        gates.new_empty(batch_size, length, recurrent.shape[1]),
        gates.new_empty(batch_size, torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8),
        gates.new_empty(batch_size, dtype=torch.bool),
        gates.new_empty(batch_size, dtype=torch.bool),
    )


@torch.library.custom_op("fairseq_stack::stack_lstm_backward", mutates_args=(), device_types="cpu")
def _stack_lstm_backward(
    grad: Tensor,
    recurrent: Tensor,
    driving: Tensor,
    bottoms: Tensor,
    kept: Tensor | None,
    record: Tensor,
    wide: Tensor,
    inexact: Tensor,
    stacks: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of the gates (B, n, 4 H), of the projections (B, n, P), and of each sequence's own r_0 (B, R) and
    bottoms (B, M).
    """
    batch_size, length, size = grad.shape
    gradients = (
        grad.new_empty(batch_size, length, 4 * size),
        grad.new_empty(batch_size, length, len(driving)),
        grad.new_zeros(batch_size, recurrent.shape[1] - size),
        grad.new_zeros(batch_size, len(bottoms)),
    )
    if grad.numel() == 0:
        return gradients
    layout = torch.tensor(stacks, dtype=torch.int64)
    num_weights = recurrent.numel() + driving.numel()
    names = ("gate_gradients", "projection_gradients", "reading_gradients", "bottom_gradients")
    _run(
        "backward", _call(gradients[0], layout, num_weights), num_weights,
        cotangents=grad, recurrent=recurrent, driving=driving, kept=kept, workspace=record, wide=wide,
        inexact=inexact, **dict(zip(names, gradients, strict=True)),
    )  # fmt: skip
    if inexact.any():
        gradients[0][inexact] = gradients[1][inexact] = 0
    return gradients


@_stack_lstm_backward.register_fake
def _(
    grad: Tensor, recurrent: Tensor, driving: Tensor, bottoms: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size = grad.shape
    return (
        grad.new_empty(batch_size, length, 4 * size),
        grad.new_empty(batch_size, length, driving.shape[0]),
        grad.new_empty(batch_size, recurrent.shape[1] - size),
        grad.new_empty(batch_size, bottoms.shape[0]),
    )


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, recurrent, driving, _, _, bottoms, kept, ctx.stacks = inputs
    ctx.save_for_backward(recurrent, driving, bottoms, kept, *output)


def _backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    """The weights get their gradients from all steps at once."""
    recurrent, driving, bottoms, kept, outputs, remembered, record, wide, inexact = ctx.saved_tensors
    of_gates, of_projections, of_reading, of_bottoms = _stack_lstm_backward(
        grad, recurrent, driving, bottoms, kept, record, wide, inexact, ctx.stacks
    )
    outputs = outputs.masked_fill(inexact[:, None, None], 0)
    steps = of_projections.flatten(0, 1)
    return (
        of_gates,
        of_gates.flatten(0, 1).t() @ remembered.flatten(0, 1),
        steps.t() @ outputs.flatten(0, 1),
        steps.sum(0),
        of_reading.sum(0),
        of_bottoms.sum(0),
        None,
        None,
    )


def _refuse(ctx: Any, *grads: Tensor) -> None:
    refuse_second_derivative("stack_lstm")


_stack_lstm.register_autograd(_backward, setup_context=_setup_context)
_stack_lstm_backward.register_autograd(_refuse)


def _numbers(stack: ControlledStack) -> tuple[int, ...]:
    """The stack as struct rnn_stack."""
    pushes = _PUSHES.index(stack.pushes)
    if isinstance(stack, ControlledSuperposition):
        return 0, stack.size, pushes, stack.depth_limit or _UNLIMITED, 0, 0, 0, 0, 0
    limit = min(stack.window or _UNLIMITED, _UNLIMITED)
    options = stack.normalized, stack.original_bottom, stack.states_in_reading
    return 1, stack.size, pushes, limit, stack.num_states, stack.num_symbols, *map(int, options)


class _Stack(ctypes.Structure):
    """struct rnn_stack."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            "is_automaton", "value_size", "values", "limit", "num_states", "num_symbols", "is_normalized",
            "has_original_bottom", "reads_states",
        )
    )  # fmt: skip


class _Call(ctypes.Structure):
    """struct rnn_call."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("is_double", "sequences", "together")),
        *((name, ctypes.c_int64) for name in ("length", "hidden_size", "num_stacks")),
        *((name, ctypes.c_void_p) for name in ("stacks", "gates", "kept", "recurrent", "driving", "bias", "reading")),
        *((name, ctypes.c_void_p) for name in ("bottoms", "remembered", "outputs", "wide", "inexact")),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("cotangents", "gate_gradients", "projection_gradients")),
        *((name, ctypes.c_void_p) for name in ("reading_gradients", "bottom_gradients")),
    )


def _call(gates: Tensor, layout: Tensor, num_weights: int) -> _Call:
    """A call for gates (B, n, 4 H) and stacks as :func:`_numbers` lays them out, which must outlive it."""
    batch_size, length, size = gates.shape
    num_stacks = len(layout) // len(_Stack._fields_)
    together = _together(batch_size, length, layout.view(num_stacks, len(_Stack._fields_)), num_weights)
    call = _Call(gates.dtype == torch.float64, batch_size, together, length, size // 4, num_stacks)
    call.stacks = layout.data_ptr()
    call.workspace_bytes, *_ = _sizes(call)
    return call


def _together(batch_size: int, length: int, stacks: Tensor, num_weights: int) -> int:
    """How many sequences advance together.

    The caches have to hold the weights, which the sequences share, and the columns of nondeterministic stacks, which
    each sequence has for itself: these may take as much as the weights.
    """
    columns = 0
    for is_automaton, _, _, window, num_states, num_symbols, *_ in stacks.tolist():
        if is_automaton:
            remembered, tops = min(length, window), num_states * num_symbols
            columns += remembered**2 * tops * (tops + num_states) // 2
    fitting = _TOGETHER if columns == 0 else 1 + num_weights // columns
    return max(1, min(_TOGETHER, fitting, -(-batch_size // torch.get_num_threads())))


def _sizes(call: _Call) -> tuple[int, int, int]:
    """In bytes: of the record of a sequence, and of the working memory of both passes."""
    library = required_library()
    sizes = (ctypes.c_size_t * 3)()
    library.functions.fss_rnn_sizes(ctypes.byref(call), library.number, sizes)
    record, forward, backward = sizes
    return record, forward, backward


def _run(direction: str, call: _Call, num_weights: int, **arrays: Tensor | None) -> None:
    """Run a kernel; arrays are for fields of the call."""
    contiguous = {name: array.resolve_neg().contiguous() for name, array in arrays.items() if array is not None}
    for name, array in contiguous.items():
        setattr(call, name, array.data_ptr())
    required_library().run(
        f"fss_rnn_{direction}",
        call,
        parts=-(-call.sequences // call.together),
        work=call.sequences * call.length * num_weights,
        scratch_bytes=_sizes(call)[1 if direction == "forward" else 2],
    )
