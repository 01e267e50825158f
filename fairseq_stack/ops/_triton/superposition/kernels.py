"""The walk of F_{i,t}(d) and its reverse: the weight with which the vector of step i is at depth d after step t.

A program has some push times i. F of one time t lies in memory as [i][d], with a 0 before the first depth and one after
the last. Depths are done in parts, as many as matter at that time.
"""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl


class Sizes(NamedTuple):
    """An argument of the kernels."""

    length: int  # n
    limit: int  # how many elements the stack holds
    width: int  # of F of a push time: the depths that matter at some time, and a 0 on either side


@triton.jit
def load_actions(actions, mask=True):
    """The weights of push, no-op and pop."""
    push = tl.load(actions, mask=mask, other=0.0)
    return push, tl.load(actions + 1, mask=mask, other=0.0), tl.load(actions + 2, mask=mask, other=0.0)


@triton.jit
def _depths(t, sizes):
    """How many depths matter after step t, counted from 0: what is deeper is lost, or cannot be on top again."""
    return tl.minimum(tl.minimum(sizes.length - t, sizes.limit), sizes.width - 2)


@triton.jit
def _step(actions, before, after, t, sizes, i, PART: tl.constexpr):
    """F of time t from F of time t - 1."""
    push, noop, pop = load_actions(actions + 3 * t)
    for part in range(tl.cdiv(_depths(t - 1, sizes), PART)):
        d = part * PART + tl.arange(0, PART)
        at = i[:, None] * sizes.width + 1 + d[None, :]
        is_place = (i[:, None] >= 0) & (d < sizes.width - 2)[None, :]
        moved = push * tl.load(before + at - 1, mask=is_place, other=0.0)
        moved += noop * tl.load(before + at, mask=is_place, other=0.0)
        moved += pop * tl.load(before + at + 1, mask=is_place, other=0.0)
        tl.store(after + at, tl.where((d < _depths(t, sizes))[None, :], moved, 0.0), mask=is_place)
    return push


@triton.jit
def _start(push, after, t, sizes, first, i):
    """F_{i,i}, if step t pushes one of these; returns F of all at the top."""
    tops = after + i * sizes.width + 1
    tl.debug_barrier()
    top = tl.where(first + i == t, push, tl.load(tops))
    tl.debug_barrier()
    tl.store(tops, top)
    return top


@triton.jit
def walk(actions, weights, states, sizes, LANES: tl.constexpr, PART: tl.constexpr):
    """W_t[i] at [t][i] for some push times; ``states`` has room for two times, and is 0."""
    sequence, length, place = tl.program_id(1).to(tl.int64), sizes.length, LANES * sizes.width
    first = tl.program_id(0) * LANES
    actions += sequence * length * 3
    weights += sequence * length * length
    states += (sequence * tl.num_programs(0) + tl.program_id(0)) * (2 * place)
    i = tl.arange(0, LANES)
    for t in range(first, length):
        before, after = states + (t % 2) * place, states + ((t + 1) % 2) * place
        push = _step(actions, before, after, t, sizes, i, PART)
        top = _start(push, after, t, sizes, first, i)
        tl.store(weights + tl.cast(t, tl.int64) * length + first + i, top, mask=first + i < length)
        tl.debug_barrier()


@triton.jit
def walk_back(
    actions, cotangents, gradients, kept, states, adjoints, sizes,
    LANES: tl.constexpr, PART: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """The gradients of the actions through W_t[i] of some push times, at [program][t][action].

    F is kept before every STEPS steps, in ``kept``. From there, ``states`` gets the F of a segment, and ``adjoints``
    the derivatives of two times. All three are 0 at first.
    """
    sequence, programs = tl.program_id(1).to(tl.int64), tl.num_programs(0)
    program = sequence * programs + tl.program_id(0)
    first, length, place = tl.program_id(0) * LANES, sizes.length, LANES * sizes.width
    segments = tl.cdiv(length, STEPS)
    actions += sequence * length * 3
    cotangents += sequence * length * length
    gradients += program * length * 3
    kept += program * segments * place
    states += program * (STEPS + 1) * place
    adjoints += program * 2 * place
    i = tl.arange(0, LANES)
    begin = first // STEPS
    for segment in range(begin, segments - 1):
        _walk_segment(actions, kept + segment * place, states, segment, sizes, first, i, PART, STEPS)
        _copy(states + STEPS * place, kept + (segment + 1) * place, sizes, i, PART)
        tl.debug_barrier()
    for rest in range(segments - begin):
        segment = segments - 1 - rest
        _walk_segment(actions, kept + segment * place, states, segment, sizes, first, i, PART, STEPS)
        end = tl.minimum((segment + 1) * STEPS, length)
        for back in range(end - segment * STEPS):
            t = end - 1 - back
            later, now = adjoints + ((t + 1) % 2) * place, adjoints + (t % 2) * place
            before = states + (t - segment * STEPS) * place
            _step_back(actions, cotangents, gradients, before, later, now, t, sizes, first, i, PART)
            tl.debug_barrier()


@triton.jit
def _walk_segment(
    actions, origin, states, segment, sizes, first, i, PART: tl.constexpr, STEPS: tl.constexpr
):  # fmt: skip
    """F before and after each step of a segment, from F before it."""
    _copy(origin, states, sizes, i, PART)
    tl.debug_barrier()
    begin, place = segment * STEPS, i.shape[0] * sizes.width
    for t in range(begin, tl.minimum(begin + STEPS, sizes.length)):
        before = states + (t - begin) * place
        push = _step(actions, before, before + place, t, sizes, i, PART)
        _start(push, before + place, t, sizes, first, i)
        tl.debug_barrier()


@triton.jit
def _copy(origin, to, sizes, i, PART: tl.constexpr):
    for part in range(tl.cdiv(sizes.width, PART)):
        d = part * PART + tl.arange(0, PART)
        at = i[:, None] * sizes.width + d[None, :]
        is_place = (i[:, None] >= 0) & (d < sizes.width)[None, :]
        tl.store(to + at, tl.load(origin + at, mask=is_place, other=0.0), mask=is_place)


@triton.jit
def _step_back(
    actions, cotangents, gradients, before, later, now, t, sizes, first, i, PART: tl.constexpr
):  # fmt: skip
    """The derivative of F of time t, from the one of time t + 1; and the gradients of the actions of step t."""
    push, noop, pop = load_actions(actions + 3 * t + 3, mask=t + 1 < sizes.length)
    seed = tl.load(cotangents + tl.cast(t, tl.int64) * sizes.length + first + i, mask=first + i <= t, other=0.0)
    of_push, of_noop, of_pop = seed * 0, seed * 0, seed * 0
    for part in range(tl.cdiv(sizes.width - 2, PART)):
        d = part * PART + tl.arange(0, PART)
        at = i[:, None] * sizes.width + 1 + d[None, :]
        is_place = (first + i <= t)[:, None] & (d < _depths(t, sizes))[None, :]
        adjoint = push * tl.load(later + at + 1, mask=is_place, other=0.0)
        adjoint += noop * tl.load(later + at, mask=is_place, other=0.0)
        adjoint += pop * tl.load(later + at - 1, mask=is_place, other=0.0)
        adjoint = tl.where(is_place, adjoint + tl.where((d == 0)[None, :], seed[:, None], 0.0), 0.0)
        tl.store(now + at, adjoint, mask=(i[:, None] >= 0) & (d < sizes.width - 2)[None, :])
        of_push += tl.sum(adjoint * tl.load(before + at - 1, mask=is_place, other=0.0), 1)
        of_noop += tl.sum(adjoint * tl.load(before + at, mask=is_place, other=0.0), 1)
        of_pop += tl.sum(adjoint * tl.load(before + at + 1, mask=is_place, other=0.0), 1)
        of_push += tl.sum(tl.where(((first + i) == t)[:, None] & (d == 0)[None, :], adjoint, 0.0), 1)
    tl.store(gradients + 3 * t, tl.sum(of_push, 0))
    tl.store(gradients + 3 * t + 1, tl.sum(of_noop, 0))
    tl.store(gradients + 3 * t + 2, tl.sum(of_pop, 0))
