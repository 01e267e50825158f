"""What computes a step of an incremental state outside the compiled kernels: PyTorch, or Triton kernels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from .._backends import prefers_triton
from ._columns import Past, Step, as_block, step

ComputeStep = Callable[[Past, Tensor, int | None, Tensor, Tensor], Step]
"""Computes a step, and writes column t.

Its arguments are the columns before it, log weights (B, C, 2 C + Q), the window D or None for unlimited memory, and two
tensors to be written: column t as a block, (B, S, Q, t + 1, C), and its exponents, (B, t + 1). It returns the step
without ``column.gamma``.
"""


def step_for(device: torch.device) -> ComputeStep:
    """What computes the steps on a device."""
    if not prefers_triton(device):
        return step_pytorch
    from ._gpu_step import step_triton

    return step_triton


def step_pytorch(past: Past, logits: Tensor, window: int | None, gamma: Tensor, exponents: Tensor) -> Step:
    """A step in PyTorch, on any device."""
    computed = step(past, logits.double(), window)
    gamma.copy_(as_block(computed.column.gamma, gamma.shape[2]))
    exponents.copy_(computed.column.exponents)
    return computed._replace(column=computed.column._replace(gamma=gamma.new_empty(0)))
