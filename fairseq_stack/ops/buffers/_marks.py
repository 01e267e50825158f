"""Marks, NaN or 0, for what buffers read that depends on values that are not finite."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite, from_then_on, mark
from .pytorch import filled_parts, output_weights, place, rows


def marks_of_input(pop: Tensor, items: Tensor) -> Tensor:
    """For the inputs, (B, T, m), from the arguments of the reference."""
    before, share = place(finite(pop.detach()), items.size(1))
    marks = pad(mark(items), (0, 0, 0, 2))
    after = rows(marks, before + 1).where((share > 0).unsqueeze(2), 0)
    return from_then_on(mark(pop)).unsqueeze(2) + rows(marks, before) + after


def marks_of_output(push: Tensor, values: Tensor, length: int, first: int) -> Tensor:
    """For the outputs, (B, length, m), from the arguments of the reference."""
    known = finite(push.detach() + from_then_on(mark(push)))
    total = known.double().sum(1, keepdim=True)
    unknown = (filled_parts(total, length, first) < 1) & push.isfinite().logical_not().any(1)[:, None, None]
    is_read = output_weights(known, length, first) > 0
    undefined = values.detach().isfinite().logical_not()
    reads_undefined = torch.bmm(is_read.to(values.dtype), undefined.to(values.dtype)) > 0
    return values.new_zeros(()).masked_fill(unknown | reads_undefined, torch.nan)
