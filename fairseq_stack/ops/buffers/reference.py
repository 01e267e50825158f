"""The buffers as queues, by the equations of the paper: slow, and easy to check against them."""

from __future__ import annotations

import torch
from torch import Tensor

from ..queues.reference import pop_front, read_front


def input_buffer_reference(pop: Tensor, items: Tensor) -> Tensor:
    """The inputs x_t of Hao et al. (2018), (B, T, m).

    Args:
        pop: (B, T), the strengths i_{t-1} that are popped before x_t is read; i_0 = 0.
        items: (B, n, m), pushed with the strength 1 before the first step.
    """
    if pop.size(1) == 0 or items.size(1) == 0:
        return 0 * pop.unsqueeze(2) * items.sum(1, keepdim=True)
    one = items.new_ones(items.size(0))
    strengths = [one] * items.size(1)
    inputs = []
    for t in range(pop.size(1)):
        strengths = pop_front(strengths, pop[:, t])
        inputs.append(read_front(strengths, items, one))
    return torch.stack(inputs, 1)


def output_buffer_reference(push: Tensor, values: Tensor, length: int, first: int) -> Tensor:
    """The outputs of Hao et al. (2018), (B, length, m).

    Args:
        push: (B, T), the strengths o_t.
        values: (B, T, m), the vectors y_t.
        length: the number of outputs.
        first: the strength that is popped before the first output is read; before each other it is 1.
    """
    if length == 0 or push.size(1) == 0:
        return (0 * push.sum(1)[:, None, None] * values.sum(1, keepdim=True)).expand(-1, length, -1)
    strengths = list(push.unbind(1))
    one = values.new_ones(values.size(0))
    outputs = []
    for j in range(length):
        strengths = pop_front(strengths, one if j else first * one)
        outputs.append(read_front(strengths, values, one))
    return torch.stack(outputs, 1)
