"""Marks, NaN or 0, for what buffers read that depends on values that are not finite."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite, from_then_on, mark
from .pytorch import filled_parts, output_weights, place


def marks_of_input(pop: Tensor, items: Tensor) -> Tensor:
    """For the inputs, (B, T, m), from the arguments of the reference."""
    before, share = place(finite(pop.detach()), items.size(1))
    steps = torch.arange(items.size(1) + 2, device=items.device)
    at, after = (before.unsqueeze(2) + i == steps for i in (0, 1))
    is_read = at | (after & (share > 0).unsqueeze(2))
    return from_then_on(mark(pop)).unsqueeze(2) + _marks_of_read(is_read, pad(items, (0, 0, 0, 2)))


def marks_of_output(push: Tensor, values: Tensor, length: int, first: int) -> Tensor:
    """For the outputs, (B, length, m), from the arguments of the reference."""
    known = finite(push.detach() + from_then_on(mark(push)))
    total = known.double().sum(1, keepdim=True)
    unknown = (filled_parts(total, length, first) < 1) & push.isfinite().logical_not().any(1)[:, None, None]
    is_read = output_weights(known, length, first) > 0
    return values.new_zeros(()).masked_fill(unknown, torch.nan) + _marks_of_read(is_read, values)


def _marks_of_read(is_read: Tensor, values: Tensor) -> Tensor:
    """(B, T, m) for what reads some of the values (B, n, m): those for which ``is_read`` (B, T, n)."""
    undefined = values.detach().isfinite().logical_not().to(values.dtype)
    hits = torch.bmm(is_read.to(values.dtype), undefined) > 0
    return values.new_zeros(()).masked_fill(hits, torch.nan)
