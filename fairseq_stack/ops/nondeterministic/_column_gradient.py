"""The backward pass of one step of the inner weights: (h)-(m) of ``docs/algorithm.md`` for column t.

What is called the gradient of a tensor here is that of its mantissas: the exponents take no part in differentiation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import finite
from ._columns import DEAD, NewColumn, Past, Step, as_block, bounded, popped_blocks, power_of_two, times


class Owed(NamedTuple):
    """The gradients of what a step was computed from."""

    logits: Tensor
    vectors: Tensor
    alpha: Tensor
    last: Tensor
    blocks: Sequence[Tensor]


class Gradients(NamedTuple):
    """The gradients of what a step computed, those of gamma and alpha as far as they come from later steps."""

    reading: Tensor | None  # (B, C, m); None for 0
    gamma: Tensor  # of column t, (B, t + 1, C, C)
    alpha: Tensor  # of alpha[t], (B, C)


def differentiate(past: Past, logits: Tensor, vectors: Tensor, step: Step, gradients: Gradients) -> Owed:
    """What step t owes: (h)-(m) for column t.

    Args:
        past: the columns before it.
        logits: the log weights, (B, C, 2 C + Q).
        vectors: v_i, from the first that is remembered to v_t, (B, t + 1, m).
        step: the step.
        gradients: of what it computed.
    """
    of_reading, of_gamma, of_alpha = gradients
    gamma, weights = step.column.gamma, step.top.weights
    of_vectors = torch.zeros_like(vectors)
    of_tops = of_alpha[:, None].expand_as(weights)
    if of_reading is not None:
        of_vectors = torch.bmm(weights, of_reading)
        of_weights = torch.bmm(finite(vectors), of_reading.transpose(1, 2))
        total = step.top.alpha.sum(1)
        of_weights = through_softmax(weights.flatten(1), of_weights.flatten(1)).view_as(weights)
        of_tops = of_tops + of_weights / torch.where(total == 0, 1, total)[:, None, None]
    exponents = step.column.exponents + past.alpha_exponents - step.top.alpha_exponent[:, None]
    of_tops = torch.where(weights == 0, 0, bounded(times(of_tops, power_of_two(exponents))))
    of_gamma = of_gamma + past.alpha[..., None] * of_tops[:, :, None]
    of_transitions, of_last, of_blocks = _through_column(past, step, of_gamma)
    of_logits = torch.where(logits < torch.inf, of_transitions * step.transitions, 0)
    return Owed(of_logits, of_vectors, (gamma * of_tops[:, :, None]).sum(3), of_last, of_blocks)


def through_softmax(weights: Tensor, of_weights: Tensor) -> Tensor:
    """b_t by (h): weights times b_t is dL/dx for weights = softmax of x over the last axis.

    The gradient is first centred on its value at the largest weight: where one weight is almost 1, the usual formula is
    a difference of two almost equal numbers.
    """
    gradient = of_weights - of_weights.gather(-1, weights.argmax(-1, keepdim=True))
    return gradient - torch.linalg.vecdot(weights, gradient)[..., None]


def _through_column(past: Past, step: Step, of_gamma: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
    """(j)-(l): the gradients of Delta_t, of column t - 1 and of the blocks from that of column t."""
    column, transitions = step.column, step.transitions
    last = past.last()
    size, num_states = last.shape[2], column.popped.shape[1]
    of_gamma = _before_normalising(of_gamma, column.gamma, column.exponents, column.sums)
    of_sums, of_second, of_pushed = of_gamma[:, :-2], of_gamma[:, -2:-1], of_gamma[:, -1]
    kept = times(of_sums, power_of_two(past.exponents[:, :-1] - column.sums[:, :-2]))
    of_popped, of_blocks = _through_pops(past, column, as_block(of_sums, num_states).flatten(3).flatten(0, 1))
    of_moved = bounded(torch.cat([torch.cat([kept, of_second], 1), pad(of_popped, (0, 0, 0, 0, 1, 0))], 3))
    of_last = of_moved @ transitions[:, None, :, size:].transpose(2, 3)
    of_kept_and_popped = torch.bmm(last.flatten(1, 2).transpose(1, 2), of_moved.flatten(1, 2))
    occurs = past.alpha[:, -1, :, None] > 0
    return torch.cat([of_pushed * occurs, of_kept_and_popped], 2), of_last, of_blocks


def _through_pops(past: Past, column: NewColumn, of_sum: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The gradients of gamma' before it was normalised, (B, t - 1, C, Q), and of the blocks.

    ``of_sum`` is the gradient of the sum over k and u, (B * S, Q, (t - 1) C).
    """
    of_popped, of_blocks = [], []
    sums = column.sums[:, :-2]
    factors_of_sum = popped_blocks(column.popped, column.popped_exponents, past.blocks, sums)
    for blocks, (popped, matrix, factors) in zip(past.blocks, factors_of_sum, strict=True):
        part = of_sum[:, :, : matrix.shape[2]]
        of_popped.append(torch.bmm(part, matrix.transpose(1, 2)))
        of_blocks.append(torch.bmm(popped.transpose(1, 2), part).view(blocks.mantissas.shape) * factors)
    gradient = torch.cat(of_popped, 2) if of_popped else column.popped
    popped, gradient = (_from_popped(x, *past.alpha.shape[::2]) for x in (column.popped, gradient))
    return _before_normalising(gradient, popped, column.popped_exponents, past.exponents[:, 1:]), of_blocks


def _before_normalising(gradient: Tensor, mantissas: Tensor, exponents: Tensor, before: Tensor) -> Tensor:
    """The gradient of blocks (B, K, ...) from that of their mantissas, with the exponents before and after."""
    shifts = torch.where(exponents > DEAD, before - exponents, 0)
    return torch.where(mantissas == 0, 0, bounded(times(gradient, torch.exp2(shifts))))


def _from_popped(popped: Tensor, batch_size: int, size: int) -> Tensor:
    """gamma'[k -> t][u,y -> r] at [(b, y), r, (k, u)] to [b, k, uy, r], where there are ``size`` pairs uy."""
    _, num_states, width = popped.shape
    popped = popped.view(batch_size, size // num_states, num_states, width // num_states, num_states)
    return popped.permute(0, 3, 4, 1, 2).flatten(2, 3)
