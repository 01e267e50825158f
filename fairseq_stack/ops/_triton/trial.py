"""Whether Triton works: it compiles kernels for the GPU, and what launches them with the machine's C compiler."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _write_one(number):
    tl.store(number, 1)


def run_a_kernel(device: torch.device) -> None:
    """Run a kernel on a device; it raises whatever Triton raises where it does not work."""
    number = torch.zeros(1, dtype=torch.int32, device=device)
    with torch.cuda.device_of(number):
        _write_one[(1,)](number)
    if number.item() != 1:
        raise RuntimeError("a kernel had no effect")
