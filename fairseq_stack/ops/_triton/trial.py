"""Whether Triton works: it compiles kernels for the GPU, and what launches them with the machine's C compiler."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from .devices import on_their_device


@triton.jit
def _write_one(number):
    tl.store(number, 1)


@on_their_device
def _launch(number: torch.Tensor) -> None:
    _write_one[(1,)](number)


def run_a_kernel(device: torch.device) -> None:
    """Run a kernel on a device; it raises whatever Triton raises where it does not work."""
    number = torch.zeros(1, dtype=torch.int32, device=device)
    _launch(number)
    if number.item() != 1:
        raise RuntimeError("a kernel had no effect")
