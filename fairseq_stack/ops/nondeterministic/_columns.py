"""One step of the inner weights in real numbers, for the incremental state; and what the parallel stack shares.

Equations with letters are in ``docs/algorithm.md``, equations with numbers in the paper.

Notation: Q states, S stack symbols, C = Q * S configurations (q, x) in row-major order, m vector size. Column
t of the inner weights is gamma[i -> t][q,x -> r,y] for i = -1..t-1, a tensor (B, t + 1, C, C) at index
[b, i + 1, qx, ry]. For the pop rule, columns are also kept as *blocks* (B * S, (t + 1) Q, (t + 1) C) at index
[(b, y), (k, u), (i + 1, qx)], so that the sum over k and u of Eq. 24 is one matrix product.

Two facts make real numbers sufficient. Multiplying all transition weights of a step by a constant leaves the readings
unchanged, so each step's weights are divided by their maximum. And the vector on top after i -> t is always
the one pushed at step i + 1, so that zeta[i -> t] = gamma[i -> t] v_{i+1}, and readings average the pushed
vectors:

    r_t[r, y] = sum_i W_t[i][r, y] v_{i+1}
    W_t[i][r, y] = sum_{q, x} alpha[i][q, x] gamma[i -> t][q,x -> r,y] / sum_{r, y} alpha[t][r, y]

*Exponents*: where the inner weights could leave the range of float64, each block (i, t) is kept as a
mantissa, whose largest element is in [1, 2), and an integer exponent, and so are gamma' and alpha. Exponents
are integers in float64 tensors; a block of zeros has the exponent ``DEAD``. They take no part in
differentiation: each power of two that a mantissa is divided by is multiplied in again later.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import torch
from torch import Tensor

DEAD = -1e9
EXACT_RANGE = 230.0  # Within this range of the log weights of one step, all results are exact.
LOWEST_LOG = -690.0  # its exp is still a normal number in float64
_LARGEST_EXPONENT = 1000.0
LARGEST = 2.0**1000  # of a derivative: sums of its products with weights, which are below 2, are numbers


class Top(NamedTuple):
    """(c) and (d) (Eqs. 27 and 29) at step t."""

    weights: Tensor  # W_t, (B, t + 1, C)
    alpha: Tensor  # alpha[t] without its exponent, (B, C)
    alpha_exponent: Tensor  # (B,)


def join_transitions(push: Tensor, replace: Tensor, pop: Tensor) -> Tensor:
    """Log weights (..., Q, S, Q, S), the same, and (..., Q, S, Q) as one (..., C, 2 C + Q) in float64."""
    push, replace = (x.flatten(-4, -3).flatten(-2) for x in (push, replace))
    return torch.cat([push, replace, pop.flatten(-3, -2)], -1).double()


def relative_to_largest(logits: Tensor) -> Tensor:
    """Log weights (..., C, 2 C + Q) less the largest of the step, unless all are -inf."""
    return logits - largest_of(logits)[..., None, None]


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


def lift(logits: Tensor) -> Tensor:
    """Raise log weights (..., C, 2 C + Q), relative to the largest, to where their exp is not 0.

    All transitions from one configuration are raised together, so that its largest push or replacement is a
    normal number: runs can continue from every configuration from which they could before.
    """
    constants = logits.detach()
    largest = constants[..., : 2 * logits.shape[-2]].amax(-1, keepdim=True)
    missing = torch.where(largest == -torch.inf, 0, LOWEST_LOG - largest).clamp_min(0)
    return logits + (missing - (constants + missing).clamp_min(0))


def warn_of_range() -> None:
    """Warn of log weights that are farther apart than EXACT_RANGE."""
    warnings.warn(
        f"nondeterministic_stack: log weights of one step are more than {EXACT_RANGE:g} apart, so readings may be "
        "wrong; to forbid a transition, use -inf",
        stacklevel=2,
    )


def power_of_two(exponents: Tensor) -> Tensor:
    """2^exponents, kept finite where it can only be a factor of 0."""
    return torch.exp2(exponents.clamp(max=_LARGEST_EXPONENT))


def times(x: Tensor, factors: Tensor) -> Tensor:
    """``x`` (B, K, ...) times ``factors`` (B, K)."""
    return x * factors.reshape(factors.shape + (1,) * (x.dim() - 2))


def next_column(
    last: Tensor, blocks: Tensor, exponents: Tensor, transitions: Tensor, occurs: Tensor
) -> tuple[Tensor, Tensor]:
    """(a) and (b) (Eqs. 24 and 25), written as (e): column t from columns 0..t-1.

    Args:
        last: column t - 1, (B, t, C, C).
        blocks: the columns k = 0..t-2 as blocks, (B * S, (t - 1) Q, (t - 1) C).
        exponents: of the blocks (i, k) at index [b, i + 1, k], (B, t, t).
        transitions: Delta_t, (B, C, 2 C + Q), up to a positive factor.
        occurs: whether configuration (q, x) can be on top after step t - 1, (B, C). Pushes onto others are
            left out: no run contains them, and their inner weights could outgrow all others.

    Returns:
        gamma (B, t + 1, C, C), and its exponents (B, t + 1).
    """
    steps, size = last.shape[1:3]
    pushed, replaced, popped = _move(last, transitions, occurs)
    last_exponents = exponents[:, :, -1]
    popped, popped_exponents = normalise(popped, last_exponents[:, 1:])
    # Exponents of what is added up in block (i, t): for each k, at index [b, i + 1, k], and then altogether.
    summands = exponents[:, :-1, :-1] + popped_exponents[:, None]
    sums = torch.cat([summands, last_exponents[:, :-1, None]], 2).amax(2)
    popped = _as_popped(popped)
    blocks = _scale_blocks(blocks, power_of_two(summands - sums[..., None]), size)
    pops = _from_blocks(torch.bmm(popped, blocks), steps - 1, size)
    kept = times(replaced[:, :-1], power_of_two(last_exponents[:, :-1] - sums))
    gamma = torch.cat([kept + pops, replaced[:, -1:], pushed], 1)
    sums = torch.cat([sums, last_exponents[:, -1:], torch.zeros_like(last_exponents[:, -1:])], 1)
    return normalise(gamma, sums)


def log_forward_weights(alpha: Tensor, exponent: Tensor) -> Tensor:
    """log alpha[t], (B, C), from its mantissas (B, C) and exponents (B,); -inf, with gradient 0, where it is 0."""
    impossible = alpha == 0
    logs = torch.where(impossible, 1, alpha).log() + exponent[:, None] * math.log(2)
    return torch.where(impossible, -torch.inf, logs)


def read_top(gamma: Tensor, alpha: Tensor, exponents: Tensor) -> Top:
    """(c) and (d) (Eqs. 27 and 29) for column t.

    Args:
        gamma: column t, (B, t + 1, C, C).
        alpha: alpha[i], i = -1..t-1, (B, t + 1, C).
        exponents: of alpha[i] gamma[i -> t], (B, t + 1).
    """
    numerators = (alpha[..., None] * gamma).sum(2)
    # The exponent of the largest product that is not 0, so that not all of them can become 0 here.
    exponent = (exponents + exponents_of(numerators.detach().amax(2))).amax(1)
    numerators = times(_cut_off(numerators), power_of_two(exponents - exponent[:, None]))
    new_alpha = numerators.sum(1)
    total = new_alpha.sum(1)
    total = torch.where(total == 0, 1, total)
    return Top(numerators / total[:, None, None], new_alpha, exponent)


def as_blocks(gamma: Tensor, num_states: int) -> Tensor:
    """Column k (B, rows, C, C) laid out as blocks, (B, S, Q, rows * C) at index [b, y, u, (i + 1, qx)]."""
    batch_size, rows, size, _ = gamma.shape
    gamma = gamma.reshape(batch_size, rows * size, num_states, size // num_states)
    return gamma.permute(0, 3, 2, 1)


def _from_blocks(block: Tensor, rows: int, size: int) -> Tensor:
    """The inverse of ``as_blocks``: (B * S, Q, rows * C) to (B, rows, C, C)."""
    num_states = block.shape[1]
    num_symbols = size // num_states
    batch_size = block.shape[0] // num_symbols
    block = block.reshape(batch_size, num_symbols, num_states, rows * size)
    return block.permute(0, 3, 2, 1).reshape(batch_size, rows, size, size)


def _scale_blocks(blocks: Tensor, factors: Tensor, size: int) -> Tensor:
    """Blocks (B * S, K Q, rows * C) times ``factors`` (B, rows, K), one for each row and column."""
    batch_size, rows, columns = factors.shape
    num_symbols = blocks.shape[0] // max(batch_size, 1)
    shape = batch_size, num_symbols, columns, size // max(num_symbols, 1), rows, size
    factors = factors.transpose(1, 2)[:, None, :, None, :, None]
    return (blocks.reshape(shape) * factors).reshape(blocks.shape)


def _as_popped(popped: Tensor) -> Tensor:
    """gamma'[k -> t][u,y -> r] at [b, k, uy, r] to [(b, y), r, (k, u)]."""
    batch_size, columns, size, num_states = popped.shape
    num_symbols = size // num_states
    popped = popped.reshape(batch_size, columns, num_states, num_symbols, num_states).permute(0, 3, 4, 1, 2)
    return popped.reshape(batch_size * num_symbols, num_states, columns * num_states)


def _move(last: Tensor, transitions: Tensor, occurs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The products with Delta_t in (a) and (b) (Eqs. 24 and 25), of column t - 1 (B, t, C, C).

    Returns:
        Pushes (B, 1, C, C), replacements (B, t, C, C), and gamma'[k -> t] (B, t - 1, C, Q) at [b, k, uy, r].
    """
    batch_size, steps, size, _ = last.shape
    moved = last.reshape(batch_size, steps * size, size) @ transitions[:, :, size:]
    moved = _bound_gradient(moved).view(batch_size, steps, size, transitions.shape[2] - size)
    pushed = transitions[:, None, :, :size] * occurs[:, None, :, None]
    return pushed, moved[..., :size], moved[:, 1:, :, size:]


def normalise(blocks: Tensor, exponents: Tensor) -> tuple[Tensor, Tensor]:
    """Blocks (B, K, rows, columns), exponents (B, K): make the largest element of each block be in [1, 2)."""
    shifts = exponents_of(blocks.detach().amax((2, 3)))
    alive = shifts > DEAD
    mantissas = times(_cut_off(blocks), torch.exp2(torch.where(alive, -shifts, 0)))
    return mantissas, torch.where(alive, exponents + shifts, DEAD)


def _cut_off(x: Tensor) -> Tensor:
    """``x``, with derivative 0 where it is 0: no run passes there, and the derivative can be infinite."""
    return _bound_gradient(torch.where(x == 0, 0, x))


def _bound_gradient(x: Tensor) -> Tensor:
    """``x``, with a derivative that is a number even if log weights are very far apart."""
    if x.requires_grad:
        x.register_hook(lambda grad: None if grad is None else grad.nan_to_num(0, 0, 0).clamp(-LARGEST, LARGEST))
    return x


def exponents_of(x: Tensor) -> Tensor:
    """floor(log2 x), and ``DEAD`` for 0."""
    return torch.where(x == 0, DEAD, torch.log2(x).floor().clamp_min(-_LARGEST_EXPONENT))
