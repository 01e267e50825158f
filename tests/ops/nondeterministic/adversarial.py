"""Inputs in which runs that were far behind are the only ones left in the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tests.ops.nondeterministic.inputs import random_inputs

KINDS = ("hindsight", "forced-pops", "stuck", "mirror", "guessed-middle", "masked-mirror", "pushes", "signs")


def adversarial(
    kind: str, cost: float, length: int, num_states: int = 2, num_symbols: int = 3, dtype: torch.dtype = torch.float64
) -> list[Tensor]:
    """Two sequences in which what is unlikely at first is what counts later."""
    inputs = [x.detach() for x in random_inputs(2, length, num_states, num_symbols, 3)]
    push, replace, pop = inputs[:3]
    half, third = length // 2, length // 3
    if kind == "pushes":
        push += cost
    elif kind == "signs":
        for x in inputs[:3]:
            x.copy_(x.sign() * cost)
    elif kind == "hindsight":  # deep stacks are unlikely, until pops are likely
        push -= cost
        pop[:, :half] -= cost
        pop[:, half:] += 2 * cost
    elif kind == "forced-pops":
        push[:, :half] -= cost
        pop[:, :half] -= cost
        push[:, half:] -= 3 * cost
        replace[:, half:] -= 3 * cost
    elif kind == "stuck":  # cheap pushes of the last symbol, on which everything is expensive in the end
        push[:, :third, ..., -1] -= 3 * cost
        replace[:, third:] -= cost
        pop[:, third : 2 * third] -= 3 * cost
        push[:, third : 2 * third, ..., :-1] -= 3 * cost
        push[:, 2 * third :] -= 3 * cost
        pop[:, 2 * third :, :, -1] -= 3 * cost
    else:
        _mirror(kind, cost, inputs)
    return [x.to(dtype).requires_grad_() for x in inputs]


def _mirror(kind: str, cost: float, inputs: Sequence[Tensor]) -> None:
    """Push half of the symbols, and pop them in reverse order; the state changes in the middle, or at any time."""
    push, replace, pop = inputs[:3]
    batch_size, length, num_states, num_symbols = push.shape[:4]
    half, after = length // 2, 1 % num_states
    words = torch.randint(num_symbols, (batch_size, half))
    allowed = [torch.zeros_like(x, dtype=torch.bool) for x in (push, replace, pop)]
    for b in range(batch_size):
        for t in range(half):
            allowed[0][b, t, 0, :, 0, words[b, t]] = True
            if kind == "guessed-middle":
                allowed[0][b, t, 0, :, after, words[b, t]] = True
        for symbol in range(num_symbols):
            allowed[1][b, half, :, symbol, after, symbol] = True
        for t in range(half + 1, min(length, 2 * half + 1)):
            allowed[2][b, t, after, words[b, 2 * half - t], after] = True
    for x, may in zip((push, replace, pop), allowed, strict=True):
        if kind == "masked-mirror":
            x[..., :1].masked_fill_(~may[..., :1], -torch.inf)
        x.add_(torch.where(may, cost, -cost))
