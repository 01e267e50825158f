"""The log weights of the best parts of runs, for the best runs: Section 11 of ``docs/algorithm.md``.

An *excursion* leaves the top of the stack by a push and comes back to it by the pop of what was pushed. Weights are
logarithms, the weight of the best way takes the place of the sum, and -inf says that there is none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

_LARGEST = 2**18
"""Elements of a sum; measured: as many sequences at a time as stay in the caches."""


@dataclass(frozen=True, eq=False)
class BestParts:
    """For a sequence of n steps, C configurations, Q states and S symbols, in float64 on the CPU.

    A configuration (q, x) has the number q S + x.

    Attributes:
        push: (n, C, C), like ``replace`` and ``pop`` the log weights themselves.
        replace: (n, C, C).
        pop: (n, C, Q).
        removals: from x after step j to the pop of its symbol in step t, which leads to state r, at index [j, x, r, t],
            (n + 1, C, Q, n + 1): equation (n).
        excursions: from x after step j, by a push in step j + 1, to the pop of what was pushed in step t, which leads
            to state r, at the same index: equation (o).
        forward: from the start to y after step t at index [y, t], (C, n + 1): equation (p).
    """

    push: Tensor
    replace: Tensor
    pop: Tensor
    removals: Tensor
    excursions: Tensor
    forward: Tensor


def best_parts(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> Iterator[BestParts]:
    """(n)-(p) for each sequence; arguments as for ``best_runs``, without gradients."""
    length, num_states, num_symbols = push.shape[1:4]
    together = max(_LARGEST // max(length**2 * num_states * num_symbols, 1), 1)
    inputs = (x.double().resolve_neg().split(together) for x in (start, push, replace, pop))
    for begin, pushes, replaces, pops in zip(*inputs, strict=True):
        removals, excursions, forward = _weights_of_parts(begin, pushes, replaces, pops)
        steps = (x.flatten(4).flatten(2, 3) for x in (pushes, replaces))
        arrays = *steps, *(x.flatten(2, 3) for x in (pops, removals, excursions)), forward.flatten(1, 2)
        for parts in zip(*(x.contiguous().cpu() for x in arrays), strict=True):
            yield BestParts(*parts)


def _weights_of_parts(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Removals and excursions, (B, n + 1, Q, S, Q, n + 1), and forward weights, (B, Q, S, n + 1), for log weights
    (B, n, Q, S, ...).
    """
    batch_size, length, num_states, num_symbols = push.shape[:4]
    shape = batch_size, length + 1, num_states, num_symbols, num_states, length + 1
    removals, excursions = push.new_full(shape, -torch.inf), push.new_full(shape, -torch.inf)
    for j in reversed(range(length)):
        later = removals[:, j + 1, ..., j + 2 :]
        excursions[:, j, ..., j + 2 :] = _after(push[:, j], later)
        removals[:, j, ..., j + 1] = pop[:, j]
        removals[:, j, ..., j + 2 :] = _after(replace[:, j], later)
        if length - j > 2:
            _add_excursions(removals[:, j, ..., j + 3 :], excursions[:, j, ..., j + 2 : -1], removals[:, j + 2 : -1])
    forward = push.new_full((batch_size, num_states, num_symbols, length + 1), -torch.inf)
    forward[..., 0] = start
    for t in range(1, length + 1):
        step = torch.maximum(push[:, t - 1], replace[:, t - 1])
        forward[..., t] = (forward[..., t - 1, None, None] + step).amax((1, 2))
        if t > 1:
            before = forward[..., : t - 1].movedim(3, 1)[..., None]
            returned = (before + excursions[:, : t - 1, ..., t]).amax((1, 2))  # of (b, k, u, y, r)
            forward[..., t] = torch.maximum(forward[..., t], returned.transpose(1, 2))
    return removals, excursions, forward


def _after(step: Tensor, later: Tensor) -> Tensor:
    """The best of a step (b, q, x, w) and what comes later (b, w, r, t), where w is two axes: (b, q, x, r, t)."""
    return (step.flatten(3)[..., None, None] + later.flatten(1, 2)[:, None, None]).amax(3)


def _add_excursions(removals: Tensor, excursions: Tensor, later: Tensor) -> None:
    """The last term of (n): excursions (b, q, x, u, k), and removals (b, k, u, x, r, t) later than each of them."""
    for q, u in itertools.product(range(excursions.shape[1]), repeat=2):
        sums = excursions[:, q, :, u].transpose(1, 2)[..., None, None] + later[:, :, u, ..., -removals.shape[-1] :]
        removals[:, q] = torch.maximum(removals[:, q], sums.amax(1))
