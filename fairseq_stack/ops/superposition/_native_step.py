"""A step of the superposition stack by the compiled kernels: ``_native/src/superposition_state.h``."""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from .._native import required_library
from .._native.structures import Call, new_call


def step(actions: Tensor, value: Tensor, elements: Tensor, height: int) -> tuple[Tensor, bool]:
    """Eq. 5 for actions (B, 3), values (B, m) and the elements (B, t, m) before the step.

    Returns:
        The elements after the step, (B, height, m), and whether all of them are finite.
    """
    after = value.new_empty(len(value), height, value.shape[1])
    undefined = (ctypes.c_uint8 * len(value))()
    call = _call(elements, after, actions=actions, values=value, next=after)
    call.undefined = ctypes.addressof(undefined)
    _run("forward", call)
    return after, not any(undefined)


def step_gradients(
    actions: Tensor, value: Tensor, elements: Tensor, cotangents: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of the actions, the values and the elements, given the gradient of the elements after the step."""
    of_actions, of_value, of_elements = (
        torch.empty_like(x, memory_format=torch.contiguous_format) for x in (actions, value, elements)
    )
    call = _call(
        elements, cotangents, actions=actions, values=value, next_gradients=cotangents,
        action_gradients=of_actions, value_gradients=of_value, element_gradients=of_elements,
    )  # fmt: skip
    _run("backward", call)
    return of_actions, of_value, of_elements


def _call(elements: Tensor, after: Tensor, **arrays: Tensor) -> Call:
    """A call for the elements before a step, and an array of the shape of those after it; arrays are for its fields."""
    sequences, height, size = elements.shape
    call = new_call("sup_step_call", elements.dtype == torch.float64, sequences, height, after.shape[1], size)
    call.hold(elements=elements, **arrays)
    return call


def _run(direction: str, call: Call) -> None:
    required_library().run(
        f"fss_sup_step_{direction}",
        call,
        parts=call.sequences,
        work=3 * call.sequences * call.next_height * call.size,
        scratch_bytes=-(-call.size * 8 // 64) * 64,
    )
