"""The superposition stack by the compiled kernels, on CPUs: ``_native/src/superposition*.h`` have the algorithm."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from .._native import required_library
from .._native.structures import new_call
from .._operators import differentiable_once


def superposition_stack_native(actions: Tensor, values: Tensor, *, depth_limit: int | None = None) -> Tensor:
    """As ``superposition_stack_reference``, but differentiable only once, and on the CPU."""
    length = values.shape[1]
    (readings,) = _differentiable_stack(actions, values, min(depth_limit or length, length))
    return readings


@torch.library.custom_op("fairseq_stack::superposition_stack", mutates_args=(), device_types="cpu")
def _stack(actions: Tensor, values: Tensor, depth_limit: int) -> Tensor:
    """The readings (B, n, m)."""
    readings = torch.empty_like(values, memory_format=torch.contiguous_format)
    _call("forward", depth_limit, actions=actions, values=values, readings=readings)
    return readings


@_stack.register_fake
def _(actions: Tensor, values: Tensor, depth_limit: int) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


@torch.library.custom_op("fairseq_stack::superposition_stack_backward", mutates_args=(), device_types="cpu")
def _stack_backward(grad: Tensor, actions: Tensor, values: Tensor, depth_limit: int) -> tuple[Tensor, Tensor]:
    """The gradients of both arguments from the gradient of the readings."""
    gradients = _empty_gradients(actions, values)
    _call(
        "backward", depth_limit, actions=actions, values=values, cotangents=grad,
        action_gradients=gradients[0], value_gradients=gradients[1],
    )  # fmt: skip
    return gradients


@_stack_backward.register_fake
def _(grad: Tensor, actions: Tensor, values: Tensor, depth_limit: int) -> tuple[Tensor, Tensor]:
    return _empty_gradients(actions, values)


def _empty_gradients(actions: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    return (
        torch.empty_like(actions, memory_format=torch.contiguous_format),
        torch.empty_like(values, memory_format=torch.contiguous_format),
    )


_differentiable_stack = differentiable_once("superposition_stack", _stack, _stack_backward)


def _call(direction: str, depth_limit: int, *, values: Tensor, **arrays: Tensor) -> None:
    """Run a kernel for a batch; the arguments are for fields of struct sup_call."""
    library = required_library()
    sequences, length, size = values.shape
    is_limited = depth_limit < (length + 1) // 2
    is_double = int(values.dtype == torch.float64)
    sizes = (ctypes.c_size_t * 2)()
    library.functions.fss_sup_sizes(library.number, is_double, length, size, depth_limit, sizes)
    call = new_call("sup_call", is_double, sequences, length, size, depth_limit)
    call.hold(values=values, **arrays)
    library.run(
        f"fss_sup_{direction}",
        call,
        parts=sequences,
        work=sequences * length * (depth_limit * size if is_limited else length * (length + size) // 2),
        scratch_bytes=sizes[direction == "backward"],
    )
