"""Launches the kernels: sizes, memory and grids."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from ..devices import on_their_device
from . import kernels
from . import step as step_kernels

LANES = 128
ITEMS = 256  # of a program in a step


@on_their_device
def weights(pop: Tensor, push: Tensor, amounts: Tensor) -> tuple[Tensor, Tensor]:
    """W_t[i], (B, n, n), and what the backward pass needs, for u_t, d_t and c_t, (B, n)."""
    batch_size, length = pop.shape
    weights = pop.new_zeros(batch_size, length, length)
    flags = torch.zeros_like(weights, dtype=torch.uint8)
    kernels.walk[triton.cdiv(length, LANES), batch_size](pop, push, amounts, weights, flags, length, LANES=LANES)
    return weights, flags


@on_their_device
def strength_gradients(cotangents: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of u_t, d_t and c_t, (B, n), given the gradients of W, (B, n, n)."""
    batch_size, length, _ = flags.shape
    programs = triton.cdiv(length, LANES)
    gradients = cotangents.new_zeros(3, batch_size, programs, length)
    kernels.walk_back[programs, batch_size](cotangents, flags, *gradients, length, LANES=LANES)
    of_pop, of_push, of_amounts = (x.sum(1) for x in gradients)  # an operator's results share no memory
    return of_pop, of_push, of_amounts


@on_their_device
def step(before: Tensor, pop: Tensor, push: Tensor) -> tuple[Tensor, Tensor]:
    """H_t and the weights of the reading, (B, t), for H_{t-1} (B, t - 1) and u_t, d_t (B,)."""
    batch_size, count = len(before), before.shape[1] + 1
    after, weights = before.new_empty(2, batch_size, count)
    if batch_size > 0:
        step_kernels.step[triton.cdiv(count, ITEMS), batch_size](before, pop, push, after, weights, count, PART=ITEMS)
    return after, weights


@on_their_device
def step_gradients(
    before: Tensor, pop: Tensor, push: Tensor, of_after: Tensor, of_weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of H_{t-1}, u_t and d_t, given the gradients of H_t and of the weights."""
    batch_size, count = of_after.shape
    programs = triton.cdiv(count, ITEMS)
    of_before, of_strengths = torch.empty_like(before), before.new_empty(batch_size, programs, 2)
    if batch_size > 0:
        step_kernels.step_back[programs, batch_size](
            before, pop, push, of_after, of_weights, of_before, of_strengths, count, PART=ITEMS
        )
    of_pop, of_push = of_strengths.sum(1).unbind(1)
    return of_before, of_pop, of_push
