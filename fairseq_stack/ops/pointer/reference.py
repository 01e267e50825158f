"""The pointer stack step by step: slow, and easy to check against the equations."""

from __future__ import annotations

import torch
from torch import Tensor

from .pointers import addresses_of


def pointer_stack_reference(
    push: Tensor, pop: Tensor, values: Tensor, *, kappa: Tensor, cells: int, clamped: bool
) -> Tensor:
    """The equations of :func:`.pointer_stack`, differentiated by autograd; arguments as there, all finite."""
    batch_size, length, size = values.shape
    position = push.new_zeros(batch_size, dtype=torch.float64)  # z_0
    address = addresses_of(position[:, None], kappa, cells)[:, 0]  # a_0
    stack = values.new_zeros(batch_size, cells, size)  # M_0
    readings = []
    for t in range(length):
        up, down = push[:, t, None, None], pop[:, t, None, None]
        stack = stack - down * address.unsqueeze(2) * (address.unsqueeze(1) @ stack)  # M'_t
        position = position + (push[:, t].double() - pop[:, t].double())
        if clamped:
            position = position.clamp(0, cells - 1)
        address = addresses_of(position[:, None], kappa, cells)[:, 0]  # a_t
        error = values[:, t, None] - address.unsqueeze(1) @ stack
        stack = stack + up * address.unsqueeze(2) * error  # M_t
        readings.append((address.unsqueeze(1) @ stack).squeeze(1))
    return torch.stack(readings, 1) if readings else values.clone()
