"""The superposition stack by Triton kernels, for GPUs: ``_triton/superposition/`` computes W.

The readings are W V, a product of PyTorch.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._operators import differentiable_once
from .._undefined import causal


@causal
def superposition_stack_triton(actions: Tensor, values: Tensor, *, depth_limit: int | None = None) -> Tensor:
    """As ``superposition_stack_reference``, but differentiable only once, and on a GPU."""
    length = values.shape[1]
    (weights,) = _differentiable_weights(actions, min(depth_limit or length, length))
    return torch.bmm(weights, values)


@torch.library.custom_op("fairseq_stack::superposition_stack_triton", mutates_args=())
def _weights(actions: Tensor, limit: int) -> Tensor:
    """W_t[i] at index [b, t - 1, i - 1], (B, n, n), for a stack that holds ``limit`` elements."""
    if actions.numel() == 0:
        return actions.new_zeros(len(actions), actions.shape[1], actions.shape[1])
    from .._triton.superposition import launch

    with torch.cuda.device_of(actions):  # Triton launches kernels on the current device
        return launch.weights(actions.contiguous(), limit)


@_weights.register_fake
def _(actions: Tensor, limit: int) -> Tensor:
    return actions.new_empty(actions.shape[0], actions.shape[1], actions.shape[1])


@torch.library.custom_op("fairseq_stack::superposition_stack_triton_backward", mutates_args=())
def _weights_backward(grad: Tensor, actions: Tensor, limit: int) -> Tensor:
    """The gradient of the actions from the gradient of W."""
    if actions.numel() == 0:
        return torch.zeros_like(actions)
    from .._triton.superposition import launch

    with torch.cuda.device_of(actions):
        return launch.action_gradients(actions.contiguous(), grad.contiguous(), limit)


@_weights_backward.register_fake
def _(grad: Tensor, actions: Tensor, limit: int) -> Tensor:
    return actions.new_empty(actions.shape)


_differentiable_weights = differentiable_once("superposition_stack", _weights, _weights_backward)
