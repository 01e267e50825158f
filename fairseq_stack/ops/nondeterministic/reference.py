"""The nondeterministic stack as the paper writes it: slow, and meant to be obviously right.

DuSell and Chiang (2024), Appendix B. Suffixes of names are the axes of tensors: b the batch, q, r and u states, x, y
and z symbols, m the vectors; where Eqs. 24-26 write (s, z), the axes here are u, z. ``log_gamma_bqxry[i, t]`` holds
log gamma[i -> t][q, x -> r, y]. Weights are kept as logarithms. The vectors in zeta can be negative and have no
logarithm, so zeta is kept as gamma times a mean: ``mean_bqxrym[i, t]`` holds zeta[i -> t][q, x -> r, y] /
gamma[i -> t][q, x -> r, y], the mean of the vectors that the runs from i to t leave on top.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._undefined import finite, from_then_on, marks_of
from .._units import units_like
from ._log_weights import defined, join_transitions, log_sum_exp, split_transitions

Span = tuple[int, int]


def nondeterministic_stack_reference(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    return_weights: bool,
    window: int | None = None,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The readings, and W or None, in float64 inside; arguments as for ``nondeterministic_stack``.

    ``start`` is as for ``NondeterministicStackState.initial``.
    """
    dtype = values.dtype
    batch_size, _, num_states, num_symbols = push.shape[:4]
    vectors = torch.cat([bottom.double().expand(batch_size, -1)[:, None], values.double()], 1)
    logits, marks = defined(join_transitions(push, replace, pop).double())
    transitions = split_transitions(logits, num_states, num_symbols)
    marks = from_then_on(marks)[:, :, None, None, None]
    marks_of_values = from_then_on(marks_of(vectors))[:, 1:, None, None]
    averages, _ = _readings(*transitions, finite(vectors), window, start)
    readings = (averages + marks + marks_of_values).to(dtype)
    if not return_weights:
        return readings, None
    shares, _ = _readings(*transitions, units_like(vectors), window, start)
    return readings, (shares + marks).permute(0, 1, 4, 2, 3).to(dtype)


def log_partition_reference(push: Tensor, replace: Tensor, pop: Tensor, *, window: int | None = None) -> Tensor:
    """log Z_t, (B, n), in float64, as for ``nondeterministic_stack``: of the denominator of Eq. 29."""
    batch_size, length, num_states, num_symbols = push.shape[:4]
    logits, marks = defined(join_transitions(push, replace, pop).double())
    transitions = split_transitions(logits, num_states, num_symbols)
    _, log_totals = _readings(*transitions, logits.new_zeros(batch_size, length + 1, 1), window)
    return log_totals + from_then_on(marks)


def _readings(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    vectors: Tensor,
    window: int | None = None,
    start: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Eqs. 21-29 with ``vectors[:, i]`` = v_i, i = 0..n; with a window D, gamma[i -> t] = 0 for t - i > D.

    Returns:
        The readings, (B, n, Q, S, m), and the logarithms of the denominators of Eq. 29, (B, n).
    """
    batch_size, length, num_states, num_symbols = push.shape[:4]
    before = push.new_full((batch_size, num_states, num_symbols), -torch.inf)
    before[:, 0, 0] = 0
    start = before if start is None else start.to(push.dtype)
    log_gamma_bqxry: dict[Span, Tensor] = {(-1, 0): before[:, :, :, None, None] + start[:, None, None]}  # Eq. 21
    mean_bqxrym: dict[Span, Tensor] = {(-1, 0): _on_top(vectors[:, 0], log_gamma_bqxry[-1, 0])}  # Eq. 22
    log_alpha = {-1: before, 0: start}  # Eq. 23; alpha[0] by Eq. 27 with t = 0
    readings, log_totals = [], []
    for t in range(1, length + 1):
        # gamma'[k -> t][u, y -> r]
        log_popped_buyr = {
            k: log_sum_exp(log_gamma_bqxry[k, t - 1][..., None] + pop[:, t - 1, None, None], (3, 4))  # Eq. 25
            for k in range(t - 1)
            if (k, t - 1) in log_gamma_bqxry
        }
        remembered = range(-1 if window is None else max(-1, t - window), t)
        for i in remembered[:-1]:
            log_gamma_bqxry[i, t], mean_bqxrym[i, t] = _replace_or_pop(
                log_gamma_bqxry, mean_bqxrym, replace[:, t - 1], log_popped_buyr, i, t
            )
        log_gamma_bqxry[t - 1, t] = push[:, t - 1]  # Eq. 24, push
        mean_bqxrym[t - 1, t] = _on_top(vectors[:, t], push[:, t - 1])  # Eq. 26, push
        # alpha[i][q, x] gamma[i -> t][q, x -> r, y], the first i at index 0
        runs_biqxry = torch.stack([log_alpha[i][..., None, None] + log_gamma_bqxry[i, t] for i in remembered], 1)
        log_alpha[t] = log_sum_exp(runs_biqxry, (1, 2, 3))  # Eq. 27
        total = log_sum_exp(log_alpha[t], (1, 2))  # Eq. 29, the denominator
        log_totals.append(total)
        tops_biqxrym = torch.stack([mean_bqxrym[i, t] for i in remembered], 1)
        share_biqxry = _share(runs_biqxry, total[:, None, None, None, None, None])
        readings.append(torch.einsum("biqxry,biqxrym->brym", share_biqxry, tops_biqxrym))  # Eq. 28 and Eq. 29
    if not readings:
        return torch.einsum("btqxry,btm->btrym", push, vectors[:, 1:]), push.sum((2, 3, 4, 5))  # both are empty
    return torch.stack(readings, 1), torch.stack(log_totals, 1)


def _replace_or_pop(
    log_gamma_bqxry: dict[Span, Tensor],
    mean_bqxrym: dict[Span, Tensor],
    replace: Tensor,
    log_popped_buyr: dict[int, Tensor],
    i: int,
    t: int,
) -> tuple[Tensor, Tensor]:
    """gamma[i -> t] and zeta[i -> t] / gamma[i -> t] for i < t - 1: the last two lines of Eq. 24 and Eq. 26."""
    # The terms of Eq. 24, replace; pop, for each k
    replaced_bqxuzry = log_gamma_bqxry[i, t - 1][..., None, None] + replace[:, None, None]
    popped_bqxury = {
        k: log_gamma_bqxry[i, k][:, :, :, :, None] + log_popped_buyr[k].transpose(2, 3)[:, None, None]
        for k in range(i + 1, t - 1)
    }
    terms = [replaced_bqxuzry.flatten(3, 4), *popped_bqxury.values()]
    total_bqxry = log_sum_exp(torch.cat(terms, 3), (3,))  # Eq. 24, replace and pop
    share = _share(replaced_bqxuzry, total_bqxry[:, :, :, None, None])
    average_bqxrym = torch.einsum("bqxuzry,bqxuzm->bqxrym", share, mean_bqxrym[i, t - 1])  # Eq. 26, replace
    for k, term in popped_bqxury.items():
        share = _share(term, total_bqxry[:, :, :, None])
        average_bqxrym = average_bqxrym + torch.einsum("bqxury,bqxuym->bqxrym", share, mean_bqxrym[i, k])  # Eq. 26, pop
    return total_bqxry, average_bqxrym


def _on_top(vector: Tensor, log_gamma_bqxry: Tensor) -> Tensor:
    """The mean vector where every run has just pushed ``vector`` (B, m)."""
    return vector[:, None, None, None, None].expand(*log_gamma_bqxry.shape, -1)


def _share(term: Tensor, total: Tensor) -> Tensor:
    """exp(term - total), and 0 where both are -inf."""
    return torch.exp(term - total.clamp_min(torch.finfo(total.dtype).min))
