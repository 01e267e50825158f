"""Sequences for which the kernels' numbers are not precise enough: the equations in float64.

Steps of a nondeterministic stack are then computed in logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .._operators import with_autograd
from .reference import stack_lstm_reference
from .stacks import ControlledStack, Weights


def exact_outputs(gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]) -> Tensor:
    """The hidden states (B, n, H), in the dtype of the gates."""
    return stack_lstm_reference(gates.double(), [x.double() for x in weights], kept, stacks).to(gates.dtype)


def exact_gradients(
    grad: Tensor, gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]
) -> list[Tensor]:
    """The gradients of the gates and of the weights, given the gradient of the hidden states, in its dtype."""

    def compute() -> list[Tensor]:
        of_input, *others = inputs = [x.detach().double().requires_grad_() for x in (gates, *weights)]
        outputs = stack_lstm_reference(of_input, others, kept, stacks)
        gradients = torch.autograd.grad(outputs, inputs, grad.double(), allow_unused=True, materialize_grads=True)
        return [x.to(grad.dtype) for x in gradients]

    return with_autograd(compute)
