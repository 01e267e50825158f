"""Where the pointer is, and the address that it stands for."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus, threshold


def positions(before: Tensor, push: Tensor, pop: Tensor, cells: int, clamped: bool) -> Tensor:
    """z_1..z_n, (B, n), in float64, from z_0 (B,): sums of pushes less pops, if ``clamped`` kept within the cells.

    They are added up in float64, so that steps and whole sequences agree.
    """
    moves = push.double() - pop.double()
    if not clamped:
        return before.unsqueeze(1) + moves.cumsum(1)
    position, after = before, []
    for move in moves.unbind(1):
        position = (position + move).clamp(0, cells - 1)
        after.append(position)
    return torch.stack(after, 1) if after else moves


def addresses_of(positions: Tensor, kappa: Tensor, cells: int) -> Tensor:
    """a_t, (B, n, C), for the positions z_t, (B, n), and kappa, (B,).

    A softmax over -s |j - c_t|, where s = log(1 + exp(kappa)). Below the root of the least normal number, addresses are
    0: products of subnormal numbers would take up to 45 times as long.
    """
    pointers = positions.clamp(0, cells - 1).to(kappa.dtype)  # c_t
    distances = (torch.arange(cells, device=kappa.device, dtype=kappa.dtype) - pointers.unsqueeze(-1)).abs()
    sharpness = softplus(kappa, threshold=40)[:, None, None]  # s
    return threshold((-sharpness * distances).softmax(-1), math.sqrt(torch.finfo(kappa.dtype).tiny), 0.0)
