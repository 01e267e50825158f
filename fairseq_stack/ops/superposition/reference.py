"""The superposition stack as the paper writes it: slow, and easy to check against the equations."""

from __future__ import annotations

import torch
from torch import Tensor

from .._undefined import causal


@causal
def superposition_stack_reference(actions: Tensor, values: Tensor, *, depth_limit: int | None = None) -> Tensor:
    """Eqs. 5-8 of DuSell and Chiang (2024), differentiated by autograd.

    Args:
        actions: (B, n, 3), a_t = weights of push, no-op and pop.
        values: (B, n, m), the pushed vectors v_t.
        depth_limit: how many elements D the stack holds; V_t[i] = 0 for i > D. None for no limit.

    Returns:
        (B, n, m), the readings r_t = V_t[1].
    """
    length = values.size(1)
    if length == 0:
        return actions[..., :1] * values  # empty, (B, 0, m)
    zero = torch.zeros_like(values[:, 0])
    stack: list[Tensor] = []  # V_{t-1}[1], ..., V_{t-1}[t - 1], or fewer; all elements of V_0 are 0
    readings = []
    for t in range(1, length + 1):
        push, noop, pop = (weight.unsqueeze(1) for weight in actions[:, t - 1].unbind(1))
        above = [values[:, t - 1], *stack]  # Eq. 6
        at = [*stack, zero]  # Eq. 7
        below = [*stack[1:], zero, zero]  # Eq. 8
        height = min(len(above), depth_limit or t)
        stack = [push * above[i] + noop * at[i] + pop * below[i] for i in range(height)]  # Eq. 5
        readings.append(stack[0])  # V_t[1]
    return torch.stack(readings, dim=1)
