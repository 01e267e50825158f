"""Launches the kernels: sizes, memory and grids."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from . import kernels

LANES = 128


def weights(pop: Tensor, push: Tensor, amounts: Tensor) -> tuple[Tensor, Tensor]:
    """W_t[i], (B, n, n), and what the backward pass needs, for u_t, d_t and c_t, (B, n)."""
    batch_size, length = pop.shape
    found = pop.new_zeros(batch_size, length, length)
    flags = torch.zeros_like(found, dtype=torch.uint8)
    kernels.walk[triton.cdiv(length, LANES), batch_size](pop, push, amounts, found, flags, length, LANES=LANES)
    return found, flags


def strength_gradients(cotangents: Tensor, flags: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of u_t, d_t and c_t, (B, n), given the gradients of W, (B, n, n)."""
    batch_size, length, _ = flags.shape
    programs = triton.cdiv(length, LANES)
    gradients = cotangents.new_zeros(3, batch_size, programs, length)
    kernels.walk_back[programs, batch_size](cotangents, flags, *gradients, length, LANES=LANES)
    of_pop, of_push, of_amounts = (x.sum(1) for x in gradients)  # an operator's results share no memory
    return of_pop, of_push, of_amounts
