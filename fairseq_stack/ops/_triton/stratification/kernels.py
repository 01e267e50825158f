"""The walk of H_t[i] and its reverse: H_t[i] is the strength of item i and of everything above it after step t.

    H_t[i] = ReLU(H_{t-1}[i] - u_t) + d_t   (i < t),    H_t[t] = d_t,    W_t[i] = min(c_t, H_t[i]) - min(c_t, H_t[i+1])

No item needs the others, except the next one in W. A program has some items of a sequence, and keeps their H in
registers. What the reverse has to know of H are two flags of each W_t[i]: whether the item is left after the pop of
step t, and whether H_t[i] is more than c_t.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _strengths(strengths, popped, pushed, t, i):
    """H_t[i], and whether the item is left after the pop of step t."""
    is_left = (i < t) & (strengths > popped)
    return tl.where(is_left, strengths - popped, 0.0) + tl.where(i <= t, pushed, 0.0), is_left


@triton.jit
def walk(pops, pushes, amounts, weights, flags, length, LANES: tl.constexpr):
    """W_t[i] and flags of some items, at [t][i]; both are 0 at first."""
    sequence, first = tl.program_id(1).to(tl.int64), tl.program_id(0) * LANES
    pops += sequence * length
    pushes += sequence * length
    amounts += sequence * length
    weights += sequence * length * length
    flags += sequence * length * length
    i = first + tl.arange(0, LANES)
    cumulative = tl.zeros((LANES,), dtype=tl.float64)
    above = tl.zeros((LANES,), dtype=tl.float64)
    for t in range(first, length):
        popped, pushed, amount = tl.load(pops + t), tl.load(pushes + t), tl.load(amounts + t)
        cumulative, is_left = _strengths(cumulative, popped, pushed, t, i)
        above, _ = _strengths(above, popped, pushed, t, i + 1)
        is_item = (i <= t) & (i < length)
        weight = tl.minimum(cumulative, amount) - tl.minimum(above, amount)
        tl.store(weights + tl.cast(t, tl.int64) * length + i, weight, mask=is_item)
        tl.store(
            flags + tl.cast(t, tl.int64) * length + i,
            is_left.to(tl.uint8) + 2 * (cumulative > amount).to(tl.uint8),
            mask=is_item,
        )


@triton.jit
def walk_back(
    cotangents, flags, pop_gradients, push_gradients, amount_gradients, length, LANES: tl.constexpr
):  # fmt: skip
    """The gradients of u_t, d_t and c_t through some items, each at [program][t]; they are 0 at first."""
    sequence, programs = tl.program_id(1).to(tl.int64), tl.num_programs(0)
    first = tl.program_id(0) * LANES
    cotangents += sequence * length * length
    flags += sequence * length * length
    place = (sequence * programs + tl.program_id(0)) * length
    i = first + tl.arange(0, LANES)
    derivative = tl.zeros((LANES,), dtype=tl.float64)  # of H_t[i], through later steps
    for back in range(length - first):
        t = length - 1 - back
        is_item = (i <= t) & (i < length)
        at = tl.cast(t, tl.int64) * length + i
        flag = tl.load(flags + at, mask=is_item, other=0)
        readable = tl.load(cotangents + at, mask=is_item, other=0.0)
        readable -= tl.load(cotangents + at - 1, mask=is_item & (i > 0), other=0.0)
        is_more = flag >= 2
        derivative += tl.where(is_more, 0.0, readable)
        tl.store(amount_gradients + place + t, tl.sum(tl.where(is_more, readable, 0.0), 0))
        tl.store(push_gradients + place + t, tl.sum(derivative, 0))
        derivative = tl.where((flag & 1) > 0, derivative, 0.0)
        tl.store(pop_gradients + place + t, -tl.sum(derivative, 0))
