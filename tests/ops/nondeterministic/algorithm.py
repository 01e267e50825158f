"""The algorithm of ``docs/algorithm.md`` as it stands there: equations (a)-(d) forward, (g)-(l) backward, line by line.

This is executable documentation, between the paper's equations (``reference.py``) and the backends, which
compute the same in tiles and with an exponent for each block. There are no tiles here, and no exponents, so that inner
weights can leave the range of float64 in long sequences. Only the tests compute with it.

Notation as in the document: B sequences, n steps, Q states, S stack symbols, C = Q * S configurations. A configuration
(q, s) has the number q * S + s. Spans are the keys of dictionaries: ``gamma[i, t]`` is gamma[i -> t][x -> y] for the
configurations x and y at index [b, x, y], (B, C, C), and ``popped[k, t]`` is gamma'[k -> t][x -> r], (B, C, Q).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.ops.nondeterministic._log_weights import join_transitions, relative_to_largest

Span = tuple[int, int]


class Transitions(NamedTuple):
    """The transition weights D_t, in dictionaries with the keys t = 1..n."""

    push: dict[int, Tensor]  # (B, C, C)
    replace: dict[int, Tensor]  # (B, C, C)
    pop: dict[int, Tensor]  # (B, C, Q)


class Runs(NamedTuple):
    """What the forward pass computes."""

    num_states: int  # Q
    delta: Transitions  # D_t
    gamma: dict[Span, Tensor]  # (a), for -1 <= i < t <= n
    popped: dict[Span, Tensor]  # (b), for 0 <= k <= t - 2
    alpha: dict[int, Tensor]  # (c), for -1 <= t <= n, (B, C)
    weights: Tensor  # (d): W_t[i][y] at index [b, t - 1, i + 1, y], (B, n, n + 1, C)
    readings: Tensor  # r_t[y] at index [b, t - 1, y], (B, n, C, m)


class Gradients(NamedTuple):
    """The derivatives of the loss with respect to what ``forward`` takes; of the log weights, at the index of D."""

    push: Tensor  # (B, n, C, C)
    replace: Tensor  # (B, n, C, C)
    pop: Tensor  # (B, n, C, Q)
    vectors: Tensor  # (B, n + 1, m)


# ---------------------------------------------------------------- forward


def forward(push: Tensor, replace: Tensor, pop: Tensor, vectors: Tensor) -> Runs:
    """Equations (a)-(d).

    Args:
        push: log weights, (B, n, Q, S, Q, S).
        replace: log weights, (B, n, Q, S, Q, S).
        pop: log weights, (B, n, Q, S, Q).
        vectors: v_0..v_n, (B, n + 1, m).
    """
    batch_size, length, num_states, num_symbols = pop.shape[:4]
    size = num_states * num_symbols
    delta = _transition_weights(push, replace, pop)
    start = torch.eye(size, dtype=torch.float64)[0].expand(batch_size, size)
    alpha = {-1: start, 0: start}
    gamma = {(-1, 0): start[:, :, None] * start[:, None, :]}
    popped: dict[Span, Tensor] = {}
    weights = torch.zeros(batch_size, length, length + 1, size, dtype=torch.float64)
    for t in range(1, length + 1):
        for k in range(t - 1):
            popped[k, t] = gamma[k, t - 1] @ delta.pop[t]  # (b)
        for i in range(-1, t - 1):
            gamma[i, t] = gamma[i, t - 1] @ delta.replace[t]  # (a), replace
            for k in range(i + 1, t - 1):
                gamma[i, t] += _then_popped(gamma[i, k], popped[k, t])  # (a), pop
        gamma[t - 1, t] = delta.push[t]  # (a), push
        numerators = torch.stack([torch.einsum("bx,bxy->by", alpha[i], gamma[i, t]) for i in range(-1, t)], 1)  # (c)
        alpha[t] = numerators.sum(1)  # (c)
        weights[:, t - 1, : t + 1] = numerators / _total(alpha[t])[:, None, None]  # (d)
    readings = torch.einsum("btiy,bim->btym", weights, vectors.double())  # (d)
    return Runs(num_states, delta, gamma, popped, alpha, weights, readings)


def _transition_weights(push: Tensor, replace: Tensor, pop: Tensor) -> Transitions:
    """D_t = exp(log weights of step t - M_t), M_t being the largest of them: Section 3."""
    size, num_states = pop.shape[2] * pop.shape[3], pop.shape[4]
    delta = torch.exp(relative_to_largest(join_transitions(push, replace, pop)))
    by_kind = delta.split([size, size, num_states], -1)
    return Transitions(*(dict(enumerate(kind.unbind(1), start=1)) for kind in by_kind))


def _then_popped(gamma: Tensor, popped: Tensor) -> Tensor:
    """sum_u gamma[x -> (u, s)] gamma'[(u, s) -> r] at index [b, x, (r, s)]: the sum over u in (a)."""
    top = popped.shape[2], -1
    return torch.einsum("bxus,busr->bxrs", gamma.unflatten(2, top), popped.unflatten(1, top)).flatten(2)


def _total(alpha: Tensor) -> Tensor:
    """Z_t of (d), (B,); but 1 where no run is left, so that W_t is 0 there."""
    total = alpha.sum(1)
    return torch.where(total == 0, 1, total)


# ---------------------------------------------------------------- backward


def backward(runs: Runs, vectors: Tensor, grad_readings: Tensor, grad_weights: Tensor) -> Gradients:
    """Equations (g)-(l).

    Args:
        runs: what ``forward`` returned.
        vectors: v_0..v_n, (B, n + 1, m).
        grad_readings: dL/dr_t, (B, n, C, m).
        grad_weights: dL/dW_t on paths other than through the readings, (B, n, n + 1, C).
    """
    cotangents = torch.einsum("btym,bim->btiy", grad_readings, vectors.double()) + grad_weights  # d_t of Section 6.1
    beta = _through_the_forward_weights(runs, cotangents)
    grad_vectors = torch.einsum("btiy,btym->bim", runs.weights, grad_readings)
    return Gradients(*_through_the_inner_weights(runs, beta), grad_vectors)


def _through_the_forward_weights(runs: Runs, cotangents: Tensor) -> dict[int, Tensor]:
    """beta_t[i, y] at index [b, i + 1, y], (B, t + 1, C), by (h) and (i)."""
    alpha_bar = {t: torch.zeros_like(alpha) for t, alpha in runs.alpha.items()}
    beta = {}
    for t in range(cotangents.shape[1], 0, -1):
        b = _softmax_backward(runs.weights[:, t - 1, : t + 1], cotangents[:, t - 1, : t + 1])
        beta[t] = b / _total(runs.alpha[t])[:, None, None] + alpha_bar[t][:, None]  # (i)
        for i in range(-1, t):
            alpha_bar[i] += torch.einsum("bxy,by->bx", runs.gamma[i, t], beta[t][:, i + 1])  # (i)
    return beta


def _softmax_backward(weights: Tensor, cotangents: Tensor) -> Tensor:
    """b_t of (g), computed by (h): relative to the derivative at the largest weight, (B, t + 1, C)."""
    star = weights.flatten(1).argmax(1, keepdim=True)
    centred = cotangents - cotangents.flatten(1).gather(1, star)[:, :, None]
    return centred - (weights * centred).sum((1, 2), keepdim=True)


def _through_the_inner_weights(runs: Runs, beta: dict[int, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """The derivatives with respect to the log weights of pushes, replacements and pops, by (j)-(l)."""
    num_states, delta, gamma, popped, alpha, *_ = runs
    batch_size, length, size, _ = runs.readings.shape
    grad_push, grad_replace = torch.zeros(2, batch_size, length, size, size, dtype=torch.float64)
    grad_pop = torch.zeros(batch_size, length, size, num_states, dtype=torch.float64)
    gamma_bar: dict[Span, Tensor] = {}
    popped_bar: dict[Span, Tensor] = {}
    for t in range(length, 0, -1):
        for i in range(-1, t):
            gamma_bar[i, t] = alpha[i][:, :, None] * beta[t][:, i + 1, None]  # (j), first line
            if t < length:
                gamma_bar[i, t] += gamma_bar[i, t + 1] @ delta.replace[t + 1].mT  # (j), first line
            if t < length and i >= 0:
                gamma_bar[i, t] += popped_bar[i, t + 1] @ delta.pop[t + 1].mT  # (j), second line
            for later in range(t + 2, length + 1):
                gamma_bar[i, t] += _not_yet_popped(gamma_bar[i, later], popped[t, later])  # (j), third line
        for k in range(t - 1):
            popped_bar[k, t] = torch.zeros_like(popped[k, t])
            for i in range(-1, k):
                popped_bar[k, t] += _inner_products(gamma_bar[i, t], gamma[i, k], num_states)  # (k)
            grad_pop[:, t - 1] += delta.pop[t] * (gamma[k, t - 1].mT @ popped_bar[k, t])  # (l), pop
        for i in range(-1, t - 1):
            grad_replace[:, t - 1] += delta.replace[t] * (gamma[i, t - 1].mT @ gamma_bar[i, t])  # (l), replace
        grad_push[:, t - 1] = gamma[t - 1, t] * gamma_bar[t - 1, t]  # (l), push
    return grad_push, grad_replace, grad_pop


def _not_yet_popped(gamma_bar: Tensor, popped: Tensor) -> Tensor:
    """sum_r' gamma_bar[x -> (r', s)] gamma'[(r, s) -> r'] at index [b, x, (r, s)]: the sum over r' in (j)."""
    top = popped.shape[2], -1
    return torch.einsum("bxrs,busr->bxus", gamma_bar.unflatten(2, top), popped.unflatten(1, top)).flatten(2)


def _inner_products(gamma_bar: Tensor, gamma: Tensor, num_states: int) -> Tensor:
    """sum_x gamma_bar[x -> (r, s)] gamma[x -> (u, s)] at index [b, (u, s), r]: the sum over x in (k)."""
    top = num_states, -1
    return torch.einsum("bxrs,bxus->busr", gamma_bar.unflatten(2, top), gamma.unflatten(2, top)).flatten(1, 2)
