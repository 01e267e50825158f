"""The stratification stack by Triton kernels, for GPUs: ``_triton/stratification/`` computes W in float64.

The readings are W V, a product of PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._operators import Function, differentiable_once
from .._strengths import exact_strengths
from .._undefined import causal


@causal
def stratification_stack_triton(
    pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0
) -> Tensor:
    """As ``stratification_stack_reference``, but differentiable only once, and on a GPU."""
    pop, push = exact_strengths(pop, push)
    weights, _ = _differentiable_weights(pop, push, torch.ones_like(pop.detach()) * read_strength)
    return torch.bmm(weights.to(values.dtype), values)


@torch.library.custom_op("fairseq_stack::stratification_stack_triton", mutates_args=())
def _weights(pop: Tensor, push: Tensor, amounts: Tensor) -> tuple[Tensor, Tensor]:
    """W_t[i] at index [b, t - 1, i - 1], (B, n, n), and flags of the same shape for the backward pass.

    All arguments are (B, n), in float64; ``amounts`` are c_t.
    """
    if pop.numel() == 0:
        return _outputs(pop, push, amounts)
    from .._triton.stratification import launch

    return launch.weights(pop.contiguous(), push.contiguous(), amounts.contiguous())


@_weights.register_fake
def _outputs(pop: Tensor, push: Tensor, amounts: Tensor) -> tuple[Tensor, Tensor]:
    """Tensors of the right shapes."""
    shape = pop.shape[0], pop.shape[1], pop.shape[1]
    return pop.new_empty(shape), pop.new_empty(shape, dtype=torch.uint8)


@torch.library.custom_op("fairseq_stack::stratification_stack_triton_backward", mutates_args=())
def _weights_backward(grad: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of u_t, d_t and c_t from the gradient of W."""
    if grad.numel() == 0:
        return _gradients_like(grad, flags)
    from .._triton.stratification import launch

    return launch.strength_gradients(grad.contiguous(), flags)


@_weights_backward.register_fake
def _gradients_like(grad: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Tensors of the right shapes."""
    of_pop, of_push, of_amounts = (grad.new_empty(grad.shape[:2]) for _ in range(3))
    return of_pop, of_push, of_amounts


def _save(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(output[1])


def _gradients(backward: Function, ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return backward(grad, *ctx.saved_tensors)


_differentiable_weights = differentiable_once(
    "stratification_stack", _weights, _weights_backward, save=_save, gradients=_gradients
)
