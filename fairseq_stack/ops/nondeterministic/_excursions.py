"""The log weights of the best parts of runs, for the best runs: Section 12 of ``docs/algorithm.md``.

An *excursion* leaves the top of the stack by a push and comes back to it by the pop of what was pushed. Weights are
logarithms, the weight of the best way takes the place of the sum, and -inf says that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .._backends import Backend, by_name, native_obstacle
from ._native_excursions import weights_of_parts_native

_SEQUENCES = 32
"""PyTorch computes so many sequences at a time."""


@dataclass(frozen=True, eq=False)
class BestParts:
    """Of a sequence of n steps, for C configurations, Q states and S symbols, in float64 on the CPU.

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
        num_symbols: S.
    """

    push: Tensor
    replace: Tensor
    pop: Tensor
    removals: Tensor
    excursions: Tensor
    forward: Tensor
    num_symbols: int

    @classmethod
    def of(
        cls, push: Tensor, replace: Tensor, pop: Tensor, removals: Tensor, excursions: Tensor, forward: Tensor
    ) -> BestParts:
        """For tensors whose configurations are two axes, Q and S: (n, Q, S, ...), (n + 1, Q, S, ...), (Q, S, n + 1)."""
        push, replace = (x.flatten(3).flatten(1, 2) for x in (push, replace))
        removals, excursions = (x.flatten(1, 2) for x in (removals, excursions))
        num_symbols = pop.shape[2]
        return cls(push, replace, pop.flatten(1, 2), removals, excursions, forward.flatten(0, 1), num_symbols)


def best_parts_native(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> Iterator[BestParts]:
    """(n)-(p) for each sequence, by the compiled kernels; arguments as for ``best_runs``, without gradients."""
    together = torch.get_num_threads()
    for some in zip(*(x.double().split(together) for x in (start, push, replace, pop)), strict=True):
        given = [x.resolve_neg().contiguous() for x in some]
        arrays = *given[1:], *weights_of_parts_native(*given)
        for parts in zip(*arrays, strict=True):
            yield BestParts.of(*parts)


def best_parts_pytorch(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> Iterator[BestParts]:
    """(n)-(p) for each sequence, vectorised; the sequences are the last axis."""
    for some in zip(*(x.double().split(_SEQUENCES) for x in (start, push, replace, pop)), strict=True):
        given = [x.movedim(0, -1).contiguous() for x in some]
        arrays = *given[1:], *_weights_of_parts(*given)
        for parts in zip(*(x.movedim(-1, 0).contiguous().cpu() for x in arrays), strict=True):
            yield BestParts.of(*parts)


def _weights_of_parts(start: Tensor, push: Tensor, replace: Tensor, pop: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Removals and excursions, (n + 1, Q, S, Q, n + 1, B), and forward weights, (Q, S, n + 1, B), for log weights
    (n, Q, S, ..., B).
    """
    length, num_states, num_symbols = push.shape[:3]
    shape = length + 1, num_states, num_symbols, num_states, length + 1, push.shape[-1]
    removals, excursions = (push.new_full(shape, -torch.inf) for _ in range(2))
    for j in reversed(range(length)):
        later = removals[j + 1]
        removals[j, ..., j + 1, :] = pop[j]
        removals[j, ..., j + 2 :, :] = _after(replace[j], later[..., j + 2 :, :])
        excursions[j, ..., j + 2 :, :] = _after(push[j], later[..., j + 2 :, :])
        _add_excursions(removals, excursions[j], j)
    forward = push.new_full((num_states, num_symbols, length + 1, push.shape[-1]), -torch.inf)
    forward[:, :, 0] = start
    for t in range(1, length + 1):
        stepped = forward[:, :, None, None, t - 1] + torch.maximum(push[t - 1], replace[t - 1])
        forward[:, :, t] = stepped.amax((0, 1))
        if t > 1:
            before = forward[:, :, : t - 1].movedim(2, 0)[:, :, :, None]
            returned = before + excursions[: t - 1, ..., t, :]  # [k, u, y, r, b]
            forward[:, :, t] = torch.maximum(forward[:, :, t], returned.amax((0, 1)).transpose(0, 1))
    return removals, excursions, forward


def _after(step: Tensor, later: Tensor) -> Tensor:
    """The best of a step (q, x, r, y, b) and what comes later (r, y, u, t, b): (q, x, u, t, b)."""
    best = torch.full((*step.shape[:2], *later.shape[2:]), -torch.inf, dtype=step.dtype, device=step.device)
    for r in range(later.shape[0]):
        for y in range(later.shape[1]):
            torch.maximum(best, step[:, :, r, y, None, None] + later[r, y], out=best)
    return best


def _add_excursions(removals: Tensor, excursions: Tensor, j: int) -> None:
    """The last term of (n) for all t: excursions from j to k, and removals from there."""
    end = removals.shape[0] - 1
    sums = torch.empty_like(excursions)
    for k in range(j + 2, end):
        total, rest = removals[j, ..., k + 1 :, :], removals[k, ..., k + 1 :, :]
        buffer = sums.flatten()[: total.numel()].view(total.shape)
        for u in range(len(rest)):
            torch.add(rest[u], excursions[:, :, u, None, k, None], out=buffer)
            torch.maximum(total, buffer, out=total)


BACKENDS = by_name(
    Backend("native", best_parts_native, native_obstacle),
    Backend("pytorch", best_parts_pytorch),
)
