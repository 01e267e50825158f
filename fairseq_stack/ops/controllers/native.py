"""A neural stack by the compiled kernels, on the CPU: all steps in one call, ``_native/src/controller.h``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._native import SMALL, buffers, required_library
from .._native.structures import Call, new_call
from .._operators import register_gradients
from .._transforms import refuse_forward_mode
from .setup import GATES, MEMORIES, ControllerSetup


def neural_stack_native(
    x: Tensor, weight: Tensor, bias: Tensor, cell: Sequence[Tensor], setup: ControllerSetup, steps: int
) -> tuple[Tensor, Tensor]:
    """The rows, and [x_{t+1}; r_t; h_t]; arguments and results as for ``neural_stack``."""
    refuse_forward_mode("neural_stack", x, weight, bias, *cell)
    recurrent, recurrent_bias = _joined(x, cell, setup)
    numbers = (
        steps, setup.vector_size, [*GATES].index(setup.controller), MEMORIES.index(setup.memory),
        int(setup.pushes_input), int(setup.is_buffered),
    )  # fmt: skip
    computed, remembered, _ = _neural_stack(x, weight, bias, recurrent, recurrent_bias, numbers)
    return computed, remembered


def _joined(x: Tensor, cell: Sequence[Tensor], setup: ControllerSetup) -> tuple[Tensor, Tensor]:
    """The weights (P, k + m + h) and the biases (P,) of a cell for [x_t; r_{t-1}; h_{t-1}].

    The candidate of a GRU is in two parts, since the reset gate multiplies only what h_{t-1} contributes.
    """
    if not cell:
        return x.new_empty(0, x.shape[2] + setup.vector_size), x.new_empty(0)
    of_input, of_hidden, input_bias, hidden_bias = cell
    if setup.controller == "gru":
        size = of_hidden.shape[1]
        of_input, input_bias = pad(of_input, (0, 0, 0, size)), pad(input_bias, (0, size))
        of_hidden = torch.cat([of_hidden[: 2 * size], pad(of_hidden[2 * size :], (0, 0, size, 0))])
        hidden_bias = torch.cat([hidden_bias[: 2 * size], pad(hidden_bias[2 * size :], (size, 0))])
    return torch.cat([of_input, of_hidden], 1), input_bias + hidden_bias


@torch.library.custom_op("fairseq_stack::neural_stack", mutates_args=(), device_types="cpu")
def _neural_stack(
    x: Tensor, weight: Tensor, bias: Tensor, recurrent: Tensor, recurrent_bias: Tensor, setup: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """The rows (B, T, R), [x_{t+1}; r_t; h_t], (B, T + 1, K), and the record of each sequence, (B, bytes) of uint8."""
    call = _call(x, weight, recurrent, setup)
    computed = x.new_empty(call.sequences, call.steps, call.rows)
    remembered = x.new_empty(call.sequences, call.steps + 1, recurrent.shape[1])
    if call.sequences == 0:
        return computed, remembered, x.new_empty(0, 0, dtype=torch.uint8)
    size = call.sequences * call.workspace_bytes
    record = torch.empty(size, dtype=torch.uint8) if size < SMALL else buffers.take(size)
    _run(
        "forward", call,
        inputs=x, recurrent=recurrent.t(), recurrent_bias=recurrent_bias, weights=weight.t(), bias=bias,
        computed=computed, remembered=remembered, workspace=record,
    )  # fmt: skip
    return computed, remembered, record.view(call.sequences, call.workspace_bytes)


@_neural_stack.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor, recurrent: Tensor, recurrent_bias: Tensor, setup: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    batch_size, steps = x.shape[0], setup[0]
    return (
        x.new_empty(batch_size, steps, weight.shape[0]),
        x.new_empty(batch_size, steps + 1, recurrent.shape[1]),
        x.new_empty(batch_size, torch.library.get_ctx().new_dynamic_size(), dtype=torch.uint8),
    )


@torch.library.custom_op("fairseq_stack::neural_stack_backward", mutates_args=(), device_types="cpu")
def _neural_stack_backward(
    of_computed: Tensor,
    of_remembered: Tensor,
    x: Tensor,
    weight: Tensor,
    recurrent: Tensor,
    record: Tensor,
    setup: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the inputs, of the gates (B, T, P), and of the rows before their activations (B, T, R)."""
    call = _call(x, weight, recurrent, setup)
    of_inputs, of_rows = torch.empty_like(x, memory_format=torch.contiguous_format), x.new_empty(of_computed.shape)
    of_gates = x.new_empty(call.sequences, call.steps, recurrent.shape[0])
    if call.sequences > 0:
        _run(
            "backward", call,
            inputs=x, recurrent=recurrent, weights=weight, workspace=record,
            computed_gradients=of_computed, remembered_gradients=of_remembered,
            input_gradients=of_inputs, gate_gradients=of_gates, row_gradients=of_rows,
        )  # fmt: skip
    return of_inputs, of_gates, of_rows


@_neural_stack_backward.register_fake
def _(
    of_computed: Tensor, of_remembered: Tensor, x: Tensor, weight: Tensor, recurrent: Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor]:
    batch_size, steps, rows = of_computed.shape
    return (
        x.new_empty(x.shape),
        x.new_empty(batch_size, steps, recurrent.shape[0]),
        x.new_empty(batch_size, steps, rows),
    )


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    x, weight, _, recurrent, _, ctx.setup = inputs
    _, remembered, record = output
    ctx.save_for_backward(x, weight, recurrent, remembered, record)


def _gradients(
    ctx: Any, of_computed: Tensor | None, of_remembered: Tensor | None, _: None
) -> tuple[Tensor | None, ...]:
    x, weight, recurrent, remembered, record = ctx.saved_tensors
    of_remembered = torch.zeros_like(remembered) if of_remembered is None else of_remembered
    if of_computed is None:
        of_computed = x.new_zeros(len(x), remembered.shape[1] - 1, len(weight))
    of_inputs, of_gates, of_rows = _neural_stack_backward(
        of_computed, of_remembered, x, weight, recurrent, record, ctx.setup
    )
    before, hidden = remembered[:, :-1], remembered[:, 1:, -weight.shape[1] :]
    if len(recurrent) == 0:
        return of_inputs, *_of_layer(of_rows, before), None, None, None
    return of_inputs, *_of_layer(of_rows, hidden), *_of_layer(of_gates, before), None


def _of_layer(gradients: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of weights and biases, (P, K) and (P,), from all steps of all sequences at once.

    Args:
        gradients: of what the layer computes, (B, T, P).
        features: what it gets, (B, T, K).
    """
    steps = gradients.flatten(0, 1).double()
    products = steps.t() @ features.flatten(0, 1).double()
    return products.to(gradients.dtype), steps.sum(0).to(gradients.dtype)


register_gradients("neural_stack", _neural_stack, _neural_stack_backward, save=_save, gradients=_gradients)


def _call(x: Tensor, weight: Tensor, recurrent: Tensor, setup: Sequence[int]) -> Call:
    """A call for inputs (B, n, k), and weights of rows (R, C) and of gates (P, K)."""
    batch_size, length, input_size = x.shape
    steps, vector_size, *options = setup
    hidden_size = recurrent.shape[1] - input_size - vector_size
    sizes = length, steps, input_size, vector_size, hidden_size, weight.shape[0]
    call = new_call("ctrl_call", x.dtype == torch.float64, batch_size, *sizes, *options)
    call.workspace_bytes, *_ = _sizes(call)
    return call


def _sizes(call: Call) -> tuple[int, ...]:
    """In bytes: of the record of a sequence, and of the working memory of both passes."""
    return required_library().sizes("fss_ctrl_sizes", call)


def _run(direction: str, call: Call, **arrays: Tensor) -> None:
    """Run a kernel; arrays are for fields of the call."""
    call.hold(**arrays)
    weights = arrays["recurrent"].numel() + arrays["weights"].numel()
    required_library().run(
        f"fss_ctrl_{direction}",
        call,
        parts=call.sequences,
        work=call.sequences * call.steps * (weights + call.steps * call.vector_size),
        scratch_bytes=_sizes(call)[1 if direction == "forward" else 2],
    )
