"""The pointer stack as a delta rule in plain PyTorch, for any device.

A pop is an update of the stack with the key a_{t-1} and the value 0, and a push one with the key a_t and the value v_t;
the stack is read with a_t. Popping and pushing are therefore two updates per step of ``ops/delta/pytorch.py``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..delta import pytorch as delta_rule
from .pointers import addresses_of, positions


def pointer_stack_pytorch(
    push: Tensor, pop: Tensor, values: Tensor, *, kappa: Tensor, cells: int, clamped: bool
) -> Tensor:
    """As ``pointer_stack_reference``."""
    stack, position = values.new_zeros(len(values), cells, values.size(2)), push.new_zeros(len(push)).double()
    return extend(stack, position, push, pop, values, kappa, clamped)[0]


def extend(
    stack: Tensor, position: Tensor, push: Tensor, pop: Tensor, values: Tensor, kappa: Tensor, clamped: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The readings of n steps, (B, n, m), and the stack M_n, (B, C, m), and position z_n, (B,), after them.

    Args:
        stack: M_0, (B, C, m).
        position: z_0, (B,), in float64.
        push: (B, n).
        pop: (B, n).
        values: (B, n, m).
        kappa: (B,).
        clamped: whether positions are kept within the cells.
    """
    cells = stack.size(1)
    visited = torch.cat([position.unsqueeze(1), positions(position, push, pop, cells, clamped)], 1)
    addresses = addresses_of(visited, kappa, cells)
    keys = torch.stack([addresses[:, :-1], addresses[:, 1:]], 2)
    updates = torch.stack([torch.zeros_like(values), values], 2)
    strengths = torch.stack([pop, push], 2)
    readings, stack = delta_rule.extend(stack, addresses[:, 1:], keys, updates, strengths, None)
    return math.sqrt(cells) * readings, stack, visited[:, -1]
