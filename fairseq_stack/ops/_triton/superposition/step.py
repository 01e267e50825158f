"""Eq. 5 for one step of an incremental state, and its reverse.

The stack before the step has ``height`` elements of m components, and ``after`` has ``next_height``. A program has some
components of some elements.
"""

from __future__ import annotations

import triton
import triton.language as tl

from .kernels import load_actions


@triton.jit
def _around(value, elements, at, height, size):
    """What is above, at and below these places of a stack."""
    is_top = at < size
    above = tl.load(value + at, mask=is_top, other=0.0)
    above += tl.load(elements + at - size, mask=~is_top & (at < (height + 1) * size), other=0.0)
    here = tl.load(elements + at, mask=at < height * size, other=0.0)
    below = tl.load(elements + at + size, mask=at + size < height * size, other=0.0)
    return above, here, below


@triton.jit
def step(actions, value, elements, after, height, next_height, size, PART: tl.constexpr):
    """The elements after a step."""
    sequence = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * PART + tl.arange(0, PART)
    push, noop, pop = load_actions(actions + sequence * 3)
    above, here, below = _around(value + sequence * size, elements + sequence * height * size, at, height, size)
    is_place = at < next_height * size
    tl.store(after + sequence * next_height * size + at, push * above + noop * here + pop * below, mask=is_place)


@triton.jit
def step_back(
    actions, value, elements, cotangents, action_gradients, value_gradients, element_gradients,
    height, next_height, size, PART: tl.constexpr,
):  # fmt: skip
    """The gradients of the value and the elements, and at [program][action] parts of the gradients of the actions."""
    sequence, programs = tl.program_id(1).to(tl.int64), tl.num_programs(0)
    at = tl.program_id(0) * PART + tl.arange(0, PART)
    push, noop, pop = load_actions(actions + sequence * 3)
    cotangents += sequence * next_height * size
    above, here, below = _around(value + sequence * size, elements + sequence * height * size, at, height, size)
    places = next_height * size
    cotangent = tl.load(cotangents + at, mask=at < places, other=0.0)
    action_gradients += (sequence * programs + tl.program_id(0)) * 3
    tl.store(action_gradients, tl.sum(cotangent * above, 0))
    tl.store(action_gradients + 1, tl.sum(cotangent * here, 0))
    tl.store(action_gradients + 2, tl.sum(cotangent * below, 0))
    tl.store(value_gradients + sequence * size + at, push * cotangent, mask=at < size)
    deeper = tl.load(cotangents + at + size, mask=at + size < places, other=0.0)
    higher = tl.load(cotangents + at - size, mask=(at >= size) & (at - size < places), other=0.0)
    gradient = push * deeper + noop * cotangent + pop * higher
    tl.store(element_gradients + sequence * height * size + at, gradient, mask=at < height * size)
