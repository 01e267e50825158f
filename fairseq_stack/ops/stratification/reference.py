"""The stratification stack as the paper writes it: slow, and easy to check against the equations."""

from __future__ import annotations

import torch
from torch import Tensor

from ..queues.reference import pop_front, read_front


def stratification_stack_reference(
    pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0
) -> Tensor:
    """Section 2.1 of Hao et al. (2018), whose equations have no numbers, differentiated by autograd.

    With the top as its front, a queue has the same cascades: each item takes what the items above it leave over.

    Args:
        pop: (B, n), the strengths u_t.
        push: (B, n), the strengths d_t.
        values: (B, n, m), the pushed vectors v_t = V_t[t].
        read_strength: how much of the strengths to read, rho_t[t]: a number, 1 in the paper, or (B, n).

    Returns:
        (B, n, m), the readings r_t.
    """
    length = values.size(1)
    if length == 0:
        return (pop + push).unsqueeze(2) * values  # empty, (B, 0, m)
    amounts = torch.ones_like(pop) * read_strength
    strengths: list[Tensor] = []  # s_t[t], ..., s_t[1]
    readings = []
    for t in range(length):
        strengths = [push[:, t], *pop_front(strengths, pop[:, t])]  # s_t[t] = d_t
        readings.append(read_front(strengths, values[:, : t + 1].flip(1), amounts[:, t]))
    return torch.stack(readings, dim=1)
