"""The queue as the paper writes it: slow, and easy to check against the equations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def queue_reference(pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0) -> Tensor:
    """The cascades of Hao et al. (2018), whose equations have no numbers, from the front; differentiated by autograd.

    Args:
        pop: (B, n), the strengths u_t.
        push: (B, n), the strengths d_t.
        values: (B, n, m), the pushed vectors v_t.
        read_strength: how much of the strengths to read, rho_t[1]: a number, 1 in the paper, or (B, n).

    Returns:
        (B, n, m), the readings r_t.
    """
    length = values.size(1)
    if length == 0:
        return (pop + push).unsqueeze(2) * values  # empty, (B, 0, m)
    amounts = torch.ones_like(pop) * read_strength
    strengths: list[Tensor] = []  # s_t[1], ..., s_t[t]
    readings = []
    for t in range(length):
        strengths = [*pop_front(strengths, pop[:, t]), push[:, t]]  # s_t[t] = d_t
        readings.append(read_front(strengths, values, amounts[:, t]))
    return torch.stack(readings, dim=1)


def pop_front(strengths: Sequence[Tensor], left_over: Tensor) -> list[Tensor]:
    """s_t[i] = ReLU(s_{t-1}[i] - u_t[i]), where u_t[i] is left over from the items in front of i."""
    popped = []
    for strength in strengths:
        popped.append(torch.relu(strength - left_over))
        left_over = torch.relu(left_over - strength)
    return popped


def read_front(strengths: Sequence[Tensor], values: Tensor, left_over: Tensor) -> Tensor:
    """r_t = sum_i min(s_t[i], rho_t[i]) v_i, where rho_t[i] is left over from the items in front of i."""
    reading = values.new_zeros(values.size(0), values.size(2))
    for i, strength in enumerate(strengths):
        reading = reading + torch.minimum(strength, left_over).unsqueeze(1) * values[:, i]
        left_over = torch.relu(left_over - strength)
    return reading
