"""The log weights of the transitions of a step, for all backends and states: (..., C, 2 C + Q) for C configurations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import Sizes, check_sizes

EXACT_RANGE = 230.0  # Within this range of the log weights of one step, float64 is precise enough.
LOWEST_LOG = -690.0  # its exp is still a normal number in float64


def check_transitions(push: Tensor, replace: Tensor, pop: Tensor, window: int | None) -> Sizes:
    """The sizes of log weights.

    Raises:
        ValueError: if the shape, dtype, layout or device of a tensor is wrong, or the number of states, the number
            of symbols or the window is not positive.
    """
    sizes = Sizes()
    sizes.check("push", push, "B n Q S Q S")
    sizes.check("replace", replace, "B n Q S Q S")
    sizes.check("pop", pop, "B n Q S Q")
    if not (sizes["Q"] and sizes["S"]):
        raise ValueError(f"pop: expected at least one state and one symbol, got shape {tuple(pop.shape)}")
    check_sizes(window=window)
    return sizes


def check_defined(**log_weights: Tensor) -> None:
    """Raise ValueError if a log weight is NaN or inf."""
    for name, x in log_weights.items():
        if not (x < torch.inf).all():
            raise ValueError(f"{name}: expected log weights that are numbers or -inf, got NaN or inf")


def join_transitions(push: Tensor, replace: Tensor, pop: Tensor) -> Tensor:
    """Log weights (..., Q, S, Q, S), the same, and (..., Q, S, Q) as one (..., C, 2 C + Q)."""
    push, replace = (x.flatten(-4, -3).flatten(-2) for x in (push, replace))
    return torch.cat([push, replace, pop.flatten(-3, -2)], -1)


def split_transitions(logits: Tensor, num_states: int, num_symbols: int) -> tuple[Tensor, Tensor, Tensor]:
    """The inverse of ``join_transitions``."""
    top = num_states, num_symbols
    size = num_states * num_symbols
    push, replace, pop = logits.unflatten(2, top).split([size, size, num_states], -1)
    return push.unflatten(-1, top), replace.unflatten(-1, top), pop


def first_configuration(shape: Sequence[int], like: Tensor) -> Tensor:
    """Log weights (B, C) of the configuration that runs start in: state 0 with symbol 0 on the stack (Eq. 23)."""
    weights = like.new_full(shape, -torch.inf)
    weights[:, 0] = 0
    return weights


def relative_to_largest(logits: Tensor) -> Tensor:
    """Log weights (..., C, 2 C + Q) less the largest of the step, unless all are -inf."""
    return logits - largest_of(logits)[..., None, None]


def evened(transitions: Tensor) -> Tensor:
    """Delta_t (B, n, C, 2 C + Q) up to a factor with which the weight of runs changes little from step to step.

    It is divided by about the geometric mean of the sums out of each configuration, a power of two, so that nothing is
    rounded.
    """
    sums = transitions.sum(3, keepdim=True)
    return transitions / torch.where(sums == 0, 1, sums).log2().mean(2, keepdim=True).round().exp2()


def largest_of(logits: Tensor) -> Tensor:
    """The largest of the log weights (..., C, 2 C + Q) of each step, (...); 0 if all are -inf, NaN if one is inf."""
    largest = logits.detach().amax((-2, -1))
    largest = torch.where(largest == -torch.inf, 0, largest)
    return torch.where(largest == torch.inf, torch.nan, largest)


def defined(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Log weights (..., C, 2 C + Q) in which the largest of the step replaces those that are NaN or inf.

    Returns:
        The log weights, and a mark for each step (...): NaN if one was replaced, and 0 if not.
    """
    undefined = ~(logits.detach() < torch.inf)
    largest = torch.where(undefined, -torch.inf, logits.detach()).amax((-2, -1), keepdim=True)
    ordinary = torch.where(undefined, torch.where(largest == -torch.inf, 0, largest), logits)
    return ordinary, torch.where(undefined.flatten(-2).any(-1), torch.nan, 0.0).to(logits.dtype)


def log_sum_exp(terms: Tensor, axes: tuple[int, ...]) -> Tensor:
    """log sum exp whose gradient is 0, not NaN, where every term is -inf."""
    largest = terms.detach().amax(axes, keepdim=True).clamp_min(torch.finfo(terms.dtype).min)
    total = torch.exp(terms - largest).sum(axes)
    impossible = total == 0
    log_total = torch.log(torch.where(impossible, 1, total)) + largest.reshape(total.shape)
    return torch.where(impossible, -torch.inf, log_total)


class Spread(NamedTuple):
    """The log weights of a step."""

    range: Tensor  # how far they are apart, except those that are -inf, (B,)
    masked: Tensor  # whether some are -inf, (B,)


def spread_of(relative: Tensor) -> Spread:
    """The spread of log weights (B, ..., ...) less the largest of their step."""
    relative = relative.detach().flatten(1)
    masked = relative == -torch.inf
    return Spread(-torch.where(masked, 0, relative).amin(1), masked.any(1))
