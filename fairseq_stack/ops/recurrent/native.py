"""An LSTM with stacks by the compiled kernels, on the CPU: all steps in one call, ``_native/src/recurrent.h``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .._native import SMALL, buffers, required_library
from .._native.structures import Call, new_call, structs
from .._operators import gradients_inside, register_gradients
from .._transforms import refuse_forward_mode
from .reference import stack_lstm_reference
from .stacks import ControlledAutomaton, ControlledStack, ControlledStratification, ControlledSuperposition, Weights

_UNLIMITED = 2**31 - 1  # a window or depth that no sequence exceeds
# As the kernels number them:
_PUSHES: tuple[Any, ...] = ("sigmoid", "exponential", "tanh", "identity", "hidden", "ones")
_KINDS = ControlledSuperposition, ControlledStratification, ControlledAutomaton
_TOGETHER = 16  # MOST_TOGETHER of the kernels


def stack_lstm_native(
    gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]
) -> Tensor:
    """The hidden states; arguments and result as for ``stack_lstm``."""
    refuse_forward_mode("stack_lstm", gates, *weights)
    numbers = [number for stack in stacks for number in _numbers(stack)]
    outputs: Tensor
    outputs, *_ = _stack_lstm(gates, *weights, kept, numbers)
    return outputs


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
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The hidden states (B, n, H), and for the backward pass [r_{t-1}; h_{t-1}], (B, n, R + H), and the record of each
    sequence, (B, bytes) of uint8; the gates of the sequences for which float64 was not precise enough; and for which
    sequences float32 and float64 were not, (B,) each.
    """
    batch_size, length, _ = gates.shape
    outputs = gates.new_empty(batch_size, length, gates.shape[2] // 4)
    remembered = gates.new_empty(batch_size, length, recurrent.shape[1])
    inexact = torch.zeros(batch_size, dtype=torch.bool)
    wide = torch.full_like(inexact, any(isinstance(x, ControlledStratification) for x in _stacks(stacks)))
    far = gates[:0].clone()
    if outputs.numel() == 0:
        return outputs, remembered, gates.new_empty(batch_size, 0, dtype=torch.uint8), far, wide, inexact
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
        far = gates[inexact]
        weights = recurrent, driving, bias, reading, bottoms
        outputs[inexact] = _exact_outputs(far, weights, None if kept is None else kept[inexact], _stacks(stacks))
        remembered[inexact] = 0
    return outputs, remembered, record.view(batch_size, call.workspace_bytes), far, wide, inexact


@_stack_lstm.register_fake
def _(gates: Tensor, recurrent: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size = gates.shape
    return (
        gates.new_empty(batch_size, length, size // 4),
        gates.new_empty(batch_size, length, recurrent.shape[1]),
        gates.new_empty(batch_size, torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8),
        gates.new_empty(torch.library.get_ctx().new_dynamic_size(), length, size),
        gates.new_empty(batch_size, dtype=torch.bool),
        gates.new_empty(batch_size, dtype=torch.bool),
    )


@torch.library.custom_op("fairseq_stack::stack_lstm_backward", mutates_args=(), device_types="cpu")
def _stack_lstm_backward(
    grad: Tensor,
    recurrent: Tensor,
    driving: Tensor,
    bias: Tensor,
    reading: Tensor,
    bottoms: Tensor,
    kept: Tensor | None,
    outputs: Tensor,
    remembered: Tensor,
    record: Tensor,
    far: Tensor,
    wide: Tensor,
    inexact: Tensor,
    stacks: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of the gates and of all weights, given what ``_stack_lstm`` got and returned."""
    batch_size, length, size = grad.shape
    of_gates = grad.new_zeros(batch_size, length, 4 * size)
    of_projections = grad.new_zeros(batch_size, length, len(driving))
    of_readings, of_bottoms = grad.new_zeros(batch_size, len(reading)), grad.new_zeros(batch_size, len(bottoms))
    if grad.numel():
        layout = torch.tensor(stacks, dtype=torch.int64)
        num_weights = recurrent.numel() + driving.numel()
        _run(
            "backward", _call(of_gates, layout, num_weights), num_weights,
            cotangents=grad, recurrent=recurrent, driving=driving, kept=kept, workspace=record, wide=wide,
            inexact=inexact, gate_gradients=of_gates, projection_gradients=of_projections,
            reading_gradients=of_readings, bottom_gradients=of_bottoms,
        )  # fmt: skip
    if len(far):
        of_gates[inexact] = of_projections[inexact] = 0
        outputs = outputs.masked_fill(inexact[:, None, None], 0)
    # The weights get their gradients from all steps at once.
    steps = of_projections.flatten(0, 1)
    gradients = (
        of_gates,
        of_gates.flatten(0, 1).t() @ remembered.flatten(0, 1),
        steps.t() @ outputs.flatten(0, 1),
        steps.sum(0),
        of_readings.sum(0),
        of_bottoms.sum(0),
    )
    if len(far):
        weights = recurrent, driving, bias, reading, bottoms
        kept_of_far = None if kept is None else kept[inexact]
        of_gates[inexact], *of_weights = _exact_gradients(grad[inexact], far, weights, kept_of_far, _stacks(stacks))
        for gradient, part in zip(gradients[1:], of_weights, strict=True):
            gradient += part
    return gradients


@_stack_lstm_backward.register_fake
def _(
    grad: Tensor, recurrent: Tensor, driving: Tensor, bias: Tensor, reading: Tensor, bottoms: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    batch_size, length, size = grad.shape
    return (
        grad.new_empty(batch_size, length, 4 * size),
        recurrent.new_empty(recurrent.shape),
        driving.new_empty(driving.shape),
        bias.new_empty(bias.shape),
        reading.new_empty(reading.shape),
        bottoms.new_empty(bottoms.shape),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    _, *saved, ctx.stacks = inputs
    ctx.save_for_backward(*saved, *output)


def _gradients(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return *_stack_lstm_backward(grad, *ctx.saved_tensors, ctx.stacks), None, None


register_gradients("stack_lstm", _stack_lstm, _stack_lstm_backward, save=_save, gradients=_gradients)


def _exact_outputs(gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]) -> Tensor:
    """The hidden states (B, n, H) by the equations in float64, where a nondeterministic stack is in logarithms."""
    return stack_lstm_reference(gates.double(), [x.double() for x in weights], kept, stacks).to(gates.dtype)


def _exact_gradients(
    grad: Tensor, gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]
) -> list[Tensor]:
    """The gradients of the gates and of the weights, given the gradient of the hidden states, in its dtype."""

    def outputs(of_input: Tensor, *others: Tensor) -> Tensor:
        return stack_lstm_reference(of_input, others, kept, stacks)

    gradients = gradients_inside(outputs, [x.double() for x in (gates, *weights)], grad.double())
    return [x.to(grad.dtype) for x in gradients]


def _numbers(stack: ControlledStack) -> tuple[int, ...]:
    """The stack as struct rnn_stack."""
    pushes = _PUSHES.index(stack.pushes)
    first = _KINDS.index(type(stack)), stack.size, pushes
    if isinstance(stack, ControlledSuperposition):
        return *first, stack.depth_limit or _UNLIMITED, 0, 0, 0, 0, 0
    if isinstance(stack, ControlledStratification):
        return *first, _UNLIMITED, 0, 0, 0, 0, 0
    limit = min(stack.window or _UNLIMITED, _UNLIMITED)
    options = stack.normalized, stack.original_bottom, stack.states_in_reading
    return *first, limit, stack.num_states, stack.num_symbols, *map(int, options)


def _stacks(numbers: Sequence[int]) -> list[ControlledStack]:
    """The stacks that :func:`_numbers` laid out."""
    stacks: list[ControlledStack] = []
    for of_stack in zip(*[iter(numbers)] * _NUMBERS, strict=True):
        kind, size, pushes, limit, num_states, num_symbols, *options = of_stack
        limited, name = None if limit == _UNLIMITED else limit, _PUSHES[pushes]
        if _KINDS[kind] is ControlledAutomaton:
            stacks.append(ControlledAutomaton(num_states, num_symbols, size, name, limited, *map(bool, options)))
        elif _KINDS[kind] is ControlledStratification:
            stacks.append(ControlledStratification(size, name))
        else:
            stacks.append(ControlledSuperposition(size, name, limited))
    return stacks


_NUMBERS = len(structs()["rnn_stack"]._fields_)  # of a stack


def _call(gates: Tensor, layout: Tensor, num_weights: int) -> Call:
    """A call for gates (B, n, 4 H) and stacks as :func:`_numbers` lays them out."""
    batch_size, length, size = gates.shape
    num_stacks = len(layout) // _NUMBERS
    together = _together(batch_size, length, layout.view(num_stacks, _NUMBERS), num_weights)
    sizes = batch_size, together, length, size // 4, num_stacks
    call = new_call("rnn_call", gates.dtype == torch.float64, *sizes)
    call.hold(stacks=layout)
    call.workspace_bytes, *_ = _sizes(call)
    return call


def _together(batch_size: int, length: int, stacks: Tensor, num_weights: int) -> int:
    """How many sequences advance together.

    The caches have to hold the weights, which the sequences share, and the columns of nondeterministic stacks, which
    each sequence has for itself: these may take as much as the weights.
    """
    columns = 0
    for kind, _, _, window, num_states, num_symbols, *_ in stacks.tolist():
        if _KINDS[kind] is ControlledAutomaton:
            remembered, tops = min(length, window), num_states * num_symbols
            columns += remembered**2 * tops * (tops + num_states) // 2
    fitting = _TOGETHER if columns == 0 else 1 + num_weights // columns
    return max(1, min(_TOGETHER, fitting, -(-batch_size // torch.get_num_threads())))


def _sizes(call: Call) -> tuple[int, ...]:
    """In bytes: of the record of a sequence, and of the working memory of both passes."""
    return required_library().sizes("fss_rnn_sizes", call)


def _run(direction: str, call: Call, num_weights: int, **arrays: Tensor | None) -> None:
    """Run a kernel; arrays are for fields of the call."""
    call.hold(**arrays)
    required_library().run(
        f"fss_rnn_{direction}",
        call,
        parts=-(-call.sequences // call.together),
        work=call.sequences * call.length * num_weights,
        scratch_bytes=_sizes(call)[1 if direction == "forward" else 2],
    )
