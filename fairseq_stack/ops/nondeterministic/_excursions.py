"""The log weights of the best parts of runs, for the best runs: Section 12 of ``docs/algorithm.md``.

An *excursion* leaves the top of the stack by a push and comes back to it by the pop of what was pushed. Weights are
logarithms, the weight of the best way takes the place of the sum, and -inf says that there is none.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class BestParts:
    """Of B sequences of n steps, for Q states and S symbols; the sequences are the last axis.

    Attributes:
        push: (n, Q, S, Q, S, B), like ``replace`` and ``pop`` the log weights themselves, in float64.
        replace: (n, Q, S, Q, S, B).
        pop: (n, Q, S, Q, B).
        removals: from (s, z) after step j to the pop of that z in step t, which leads to r, at index
            [j, s, z, r, t, b], (n + 1, Q, S, Q, n + 1, B): equation (n).
        excursions: from (s, z) after step j, by a push in step j + 1, to the pop of what was pushed in step t, which
            leads to r, at the same index: equation (o).
        forward: from the start to (r, y) after step t at index [t, r, y, b], (n + 1, Q, S, B): equation (p).
    """

    push: Tensor
    replace: Tensor
    pop: Tensor
    removals: Tensor
    excursions: Tensor
    forward: Tensor

    def of_sequence(self, number: int) -> BestParts:
        """The same of one sequence, without the last axis."""
        parts = self.push, self.replace, self.pop, self.removals, self.excursions, self.forward
        return BestParts(*(x[..., number] for x in parts))


def best_parts(push: Tensor, replace: Tensor, pop: Tensor, start: Tensor) -> BestParts:
    """(n)-(p), for log weights (B, n, Q, S, ...) and ``start`` (B, Q, S)."""
    push, replace, pop, start = (x.detach().double().movedim(0, -1).contiguous() for x in (push, replace, pop, start))
    length, num_states, num_symbols = push.shape[:3]
    shape = length + 1, num_states, num_symbols, num_states, length + 1, push.shape[-1]
    removals, excursions = (push.new_full(shape, -torch.inf) for _ in range(2))
    for j in reversed(range(length)):
        later = removals[j + 1]
        removals[j, ..., j + 1, :] = pop[j]
        removals[j, ..., j + 2 :, :] = _after(replace[j], later[..., j + 2 :, :])
        excursions[j, ..., j + 2 :, :] = _after(push[j], later[..., j + 2 :, :])
        _add_excursions(removals, excursions[j], j)
    forward = push.new_full((length + 1, num_states, num_symbols, push.shape[-1]), -torch.inf)
    forward[0] = start
    for t in range(1, length + 1):
        stepped = forward[t - 1, :, :, None, None] + torch.maximum(push[t - 1], replace[t - 1])
        forward[t] = stepped.amax((0, 1))
        if t > 1:
            returned = forward[: t - 1, :, :, None] + excursions[: t - 1, ..., t, :]  # [k, u, y, r, b]
            forward[t] = torch.maximum(forward[t], returned.amax((0, 1)).transpose(0, 1))
    return BestParts(push, replace, pop, removals, excursions, forward)


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
