"""A step of the stratification stack by the compiled kernels: ``_native/src/stratification_step.h``."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from .._native import required_library
from .._native.structures import Call, new_call


def forward(
    settled: Tensor, recent: Sequence[Tensor], strengths: Tensor, pop: Tensor, push: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """The reading (B, m), H_t (B, t), and whether all arguments are finite.

    Args:
        settled: some items, (B, k, m).
        recent: the items above them, up to v_t, each (B, m).
        strengths: H_{t-1}, (B, t - 1).
        pop: u_t, (B,).
        push: d_t, (B,).
    """
    value = recent[-1]
    reading, after = torch.empty_like(value), value.new_empty(len(value), strengths.shape[1] + 1)
    undefined = (ctypes.c_uint8 * len(value))()
    call = new_call("strat_step_call", undefined=ctypes.addressof(undefined))
    _run("forward", call, settled, recent, strengths=strengths, pops=pop, pushes=push, next=after, readings=reading)
    return reading, after, not any(undefined)


def backward(
    settled: Tensor,
    recent: Sequence[Tensor],
    derivatives: Tensor,
    strengths: Tensor,
    pop: Tensor,
    push: Tensor,
    after: Tensor,
    of_reading: Tensor | None,
    of_after: Tensor | None,
) -> list[Tensor]:
    """The gradients of the strengths and of what was popped and pushed, from those of the reading and of H_t.

    Args:
        settled: as for ``forward``.
        recent: as for ``forward``.
        derivatives: of the last items, (followed, B, m), to which the derivatives of this step are added.
        strengths: as for ``forward``, like ``pop`` and ``push``.
        pop: u_t.
        push: d_t.
        after: H_t.
        of_reading: a gradient, (B, m); None for 0.
        of_after: a gradient, (B, t); None for 0.
    """
    gradients = [strengths.new_empty(x.shape) for x in (strengths, pop, push)]
    _run(
        "backward", new_call("strat_step_call", followed=len(derivatives)), settled, recent,
        strengths=strengths, pops=pop, pushes=push, next=after,
        reading_gradients=of_reading, next_gradients=of_after, derivatives=derivatives,
        strength_gradients=gradients[0], pop_gradients=gradients[1], push_gradients=gradients[2],
    )  # fmt: skip
    return gradients


def _run(direction: str, call: Call, settled: Tensor, recent: Sequence[Tensor], **arrays: Tensor | None) -> None:
    """Run a kernel; arrays are for fields of the call."""
    call.is_double = settled.dtype == torch.float64
    call.sequences, call.settled, call.size = settled.shape
    call.height = call.settled + len(recent) - 1
    call.hold(items=array("Q", map(Tensor.data_ptr, recent)), settled_items=settled, **arrays)
    required_library().run(
        f"fss_strat_step_{direction}",
        call,
        parts=call.sequences,
        work=2 * call.sequences * (call.height + 1) * call.size,
        scratch_bytes=0,
    )
