"""Launches the kernels: sizes, memory and grids."""

from __future__ import annotations

import torch
import triton
from torch import Tensor

from ..devices import on_their_device
from . import kernels
from . import step as step_kernels

LANES, PART, STEPS = 16, 128, 32
PLACES = 1024  # of a program in a step


@on_their_device
def weights(actions: Tensor, limit: int) -> Tensor:
    """W_t[i], (B, n, n), for actions (B, n, 3) and a stack that holds so many elements."""
    batch_size, length, _ = actions.shape
    programs, sizes = triton.cdiv(length, LANES), _sizes(length, limit)
    weights = actions.new_zeros(batch_size, length, length)
    states = actions.new_zeros(batch_size, programs, 2, LANES, sizes.width)
    kernels.walk[programs, batch_size](actions, weights, states, sizes, LANES=LANES, PART=PART)
    return weights


@on_their_device
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


@on_their_device
def step(actions: Tensor, value: Tensor, elements: Tensor, height: int) -> tuple[Tensor, bool]:
    """As ``_native_step.step``, for arguments that are finite."""
    actions, value, elements = (x.resolve_neg().contiguous() for x in (actions, value, elements))
    batch_size, before, size = elements.shape
    after = value.new_empty(batch_size, height, size)
    if after.numel() > 0:
        grid = triton.cdiv(height * size, PLACES), batch_size
        step_kernels.step[grid](actions, value, elements, after, before, height, size, PART=PLACES)
    return after, True


@on_their_device
def step_gradients(
    actions: Tensor, value: Tensor, elements: Tensor, cotangents: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As ``_native_step.step_gradients``."""
    actions, value, elements, cotangents = (
        x.resolve_neg().contiguous() for x in (actions, value, elements, cotangents)
    )
    batch_size, before, size = elements.shape
    height = cotangents.shape[1]
    programs = triton.cdiv(max(before, height) * size, PLACES)
    of_actions = actions.new_empty(batch_size, programs, 3)
    of_value, of_elements = torch.empty_like(value), torch.empty_like(elements)
    if cotangents.numel() > 0:
        step_kernels.step_back[programs, batch_size](
            actions, value, elements, cotangents, of_actions, of_value, of_elements, before, height, size, PART=PLACES
        )
    return of_actions.sum(1), of_value, of_elements


def _sizes(length: int, limit: int) -> kernels.Sizes:
    return kernels.Sizes(length, limit, min((length + 1) // 2 + 1, limit) + 2)
