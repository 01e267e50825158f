"""A step of the superposition stack by Triton kernels, for GPUs: ``_triton/superposition/step.py``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def step_triton(actions: Tensor, value: Tensor, elements: Tensor, height: int) -> Tensor:
    """Eq. 5 for actions (B, 3), values (B, m) and the elements (B, t, m) before the step.

    Returns:
        The elements after the step, (B, height, m).
    """
    after: Tensor = _Step.apply(actions, value, elements, height)
    return after


class _Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, actions: Tensor, value: Tensor, elements: Tensor, height: int) -> Tensor:
        from .._triton.superposition import launch

        actions, value, elements = (x.resolve_neg().contiguous() for x in (actions, value, elements))
        ctx.save_for_backward(actions, value, elements)
        return launch.step(actions, value, elements, height)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from .._triton.superposition import launch

        actions, value, elements = ctx.saved_tensors
        return *launch.step_gradients(actions, value, elements, gradient.resolve_neg().contiguous()), None
