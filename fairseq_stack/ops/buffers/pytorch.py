"""The buffers in closed form, in plain PyTorch: run on any device, without a loop over time."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def input_buffer_pytorch(pop: Tensor, items: Tensor) -> Tensor:
    """As ``input_buffer_reference``: between two neighbouring items, an input is on the line from one to the other."""
    before, share = place(pop, items.size(1))
    padded = pad(items, (0, 0, 0, 2))  # past the end are zero vectors
    here, there = (rows(padded, index) for index in (before, before + 1))
    share = share.to(items.dtype).unsqueeze(2)
    return (1 - share) * here + share * there


def place(pop: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Where inputs are read from ``count`` items: after which item (B, T), counted from 0, and how far, in [0, 1)."""
    position = pop.double().cumsum(1).clamp(0, count)
    before = position.detach().floor()
    return before.long(), position - before


def rows(items: Tensor, index: Tensor) -> Tensor:
    """The items (B, T, m) of numbers (B, T)."""
    return items.gather(1, index.unsqueeze(2).expand(-1, -1, items.size(2)))


def output_buffer_pytorch(push: Tensor, values: Tensor, length: int, first: int) -> Tensor:
    """As ``output_buffer_reference``: an output reads what the queue holds in an interval of length 1."""
    return torch.bmm(output_weights(push, length, first).to(values.dtype), values)


def output_weights(push: Tensor, length: int, first: int) -> Tensor:
    """(B, length, T): [:, j, t] is the weight of y_t in output j, in float64.

    ReLU(min(C_t, j + e + 1) - max(C_{t-1}, j + e)) is by how much the part of the interval that is filled grows.
    """
    filled = filled_parts(push.double().cumsum(1), length, first)
    return filled - pad(filled[..., :-1], (1, 0))


def filled_parts(written: Tensor, length: int, first: int) -> Tensor:
    """Which part of the interval of each output is filled, (B, length, T), by the strengths C_t (B, T)."""
    starts = first + torch.arange(length, dtype=written.dtype, device=written.device)
    return (written.unsqueeze(1) - starts.unsqueeze(1)).clamp(0, 1)
