"""H_t and the weights of the reading for one step of an incremental state, and their reverse.

There are ``count`` items after the step, of which the last is new. A program has some of them.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _strengths(before, i, count, popped, pushed):
    """H_t[i], which is 0 after the last item, and whether the item is left after the pop."""
    strengths = tl.load(before + i, mask=i < count - 1, other=0.0)
    is_left = (i < count - 1) & (strengths > popped)
    return tl.where(i < count, tl.where(is_left, strengths - popped, 0.0) + pushed, 0.0), is_left


@triton.jit
def step(before, pops, pushes, after, weights, count, PART: tl.constexpr):
    """H_t[i], and the weight min(1, H_t[i]) - min(1, H_t[i+1])."""
    sequence = tl.program_id(1).to(tl.int64)
    i = tl.program_id(0) * PART + tl.arange(0, PART)
    popped, pushed = tl.load(pops + sequence), tl.load(pushes + sequence)
    before += sequence * (count - 1)
    cumulative, _ = _strengths(before, i, count, popped, pushed)
    above, _ = _strengths(before, i + 1, count, popped, pushed)
    tl.store(after + sequence * count + i, cumulative, mask=i < count)
    tl.store(weights + sequence * count + i, tl.minimum(cumulative, 1.0) - tl.minimum(above, 1.0), mask=i < count)


@triton.jit
def step_back(
    before, pops, pushes, of_after, of_weights, of_before, of_strengths, count, PART: tl.constexpr
):  # fmt: skip
    """The gradients of H_{t-1}, and at [program][u, d] what each program adds to the gradients of u_t and d_t."""
    sequence, programs = tl.program_id(1).to(tl.int64), tl.num_programs(0)
    i = tl.program_id(0) * PART + tl.arange(0, PART)
    popped, pushed = tl.load(pops + sequence), tl.load(pushes + sequence)
    cumulative, is_left = _strengths(before + sequence * (count - 1), i, count, popped, pushed)
    of_weights += sequence * count
    readable = tl.load(of_weights + i, mask=i < count, other=0.0)
    readable -= tl.load(of_weights + i - 1, mask=(i > 0) & (i < count), other=0.0)
    derivative = tl.load(of_after + sequence * count + i, mask=i < count, other=0.0)
    derivative += tl.where(cumulative > 1, 0.0, readable)
    of_strengths += (sequence * programs + tl.program_id(0)) * 2
    tl.store(of_strengths + 1, tl.sum(derivative, 0))
    derivative = tl.where(is_left, derivative, 0.0)
    tl.store(of_strengths, -tl.sum(derivative, 0))
    tl.store(of_before + sequence * (count - 1) + i, derivative, mask=i < count - 1)
