"""Launches the kernels: sizes, memory and grids."""

from __future__ import annotations

import triton
from torch import Tensor

from . import kernels

LANES, PART, STEPS = 16, 128, 32


def weights(actions: Tensor, limit: int) -> Tensor:
    """W_t[i], (B, n, n), for actions (B, n, 3) and a stack that holds so many elements."""
    batch_size, length, _ = actions.shape
    programs, sizes = triton.cdiv(length, LANES), _sizes(length, limit)
    weights = actions.new_zeros(batch_size, length, length)
    states = actions.new_zeros(batch_size, programs, 2, LANES, sizes.width)
    kernels.walk[programs, batch_size](actions, weights, states, sizes, LANES=LANES, PART=PART)
    return weights


def action_gradients(actions: Tensor, cotangents: Tensor, limit: int) -> Tensor:
    """The gradients of the actions, (B, n, 3), given the gradients of W, (B, n, n)."""
    batch_size, length, _ = actions.shape
    programs, sizes = triton.cdiv(length, LANES), _sizes(length, limit)
    gradients = actions.new_zeros(batch_size, programs, length, 3)
    kept, states, adjoints = (
        actions.new_zeros(batch_size, programs, count, LANES, sizes.width)
        for count in (triton.cdiv(length, STEPS), STEPS + 1, 2)
    )
    kernels.walk_back[programs, batch_size](
        actions, cotangents, gradients, kept, states, adjoints, sizes, LANES=LANES, PART=PART, STEPS=STEPS
    )
    return gradients.sum(1)


def _sizes(length: int, limit: int) -> kernels.Sizes:
    return kernels.Sizes(length, limit, min((length + 1) // 2 + 1, limit) + 2)
