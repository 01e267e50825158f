"""The stacks in whole numbers: slow, and without rounding, for comparisons with ``==``.

Python's ``/`` of two integers is the double that is nearest to their quotient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import Tensor

MANTISSA = {torch.float32: 24, torch.float64: 53}  # binary digits
Integers = np.ndarray  # of Python's integers, which have no largest one


def run_weights(push: Integers, replace: Integers, pop: Integers) -> tuple[Integers, Integers]:
    """Eqs. 21-29 of DuSell and Chiang (2024) for one sequence.

    Args:
        push: Delta_t[q, x -> r, xy], (n, Q, S, Q, S).
        replace: Delta_t[q, x -> r, y], (n, Q, S, Q, S).
        pop: Delta_t[q, x -> r, eps], (n, Q, S, Q).

    Returns:
        The weight of all runs of t steps that end in (r, y) with v_i on top, (n, n + 1, Q, S) at [t - 1, i, r, y]; and
        of all runs of t steps, (n,). Their quotient is W.
    """
    length, num_states, num_symbols = push.shape[:3]
    size = num_states * num_symbols
    start = np.zeros(size, dtype=object)
    start[0] = 1
    gamma = {(-1, 0): np.outer(start, start)}  # Eq. 21
    alpha = {-1: start, 0: start}  # Eq. 23
    tops = np.zeros((length, length + 1, size), dtype=object)
    for t in range(1, length + 1):
        step_replace, step_pop = replace[t - 1].reshape(size, size), pop[t - 1].reshape(size, num_states)
        popped = {k: (gamma[k, t - 1] @ step_pop).reshape(num_states, num_symbols, -1) for k in range(t - 1)}  # Eq. 25
        for i in range(-1, t - 1):  # Eq. 24, replace and pop
            total = gamma[i, t - 1] @ step_replace
            by_symbol = total.reshape(size, num_states, num_symbols)
            for k in range(i + 1, t - 1):
                before = gamma[i, k].reshape(size, num_states, num_symbols)
                for y in range(num_symbols):
                    by_symbol[:, :, y] += before[:, :, y] @ popped[k][:, y]
            gamma[i, t] = total
        gamma[t - 1, t] = push[t - 1].reshape(size, size)  # Eq. 24, push
        for i in range(-1, t):
            tops[t - 1, i + 1] = alpha[i] @ gamma[i, t]
        alpha[t] = tops[t - 1].sum(0)  # Eq. 27
    totals = np.array([alpha[t].sum() for t in range(1, length + 1)], dtype=object)
    return tops.reshape(length, length + 1, num_states, num_symbols), totals


def superposition(actions: Integers, values: Integers, whole: int) -> Integers:
    """Eqs. 5-8 of DuSell and Chiang (2024).

    Args:
        actions: (..., n, 3), in units of which one is ``whole``.
        values: (n, m).
        whole: how many units one is.

    Returns:
        The readings (..., n, m), those of step t in units of which one is ``whole`` ** t.
    """
    length, size = values.shape
    zero = np.zeros((*actions.shape[:-2], size), dtype=object)
    stack: list[Integers] = []
    readings = np.zeros((*actions.shape[:-2], length, size), dtype=object)
    for t in range(length):
        push, noop, pop = (actions[..., t, [k]] for k in range(3))
        above, at, below = [zero + values[t] * whole**t, *stack], [*stack, zero], [*stack[1:], zero, zero]
        stack = [push * above[i] + noop * at[i] + pop * below[i] for i in range(t + 1)]
        readings[..., t, :] = stack[0]
    return readings


def stratification(pop: Integers, push: Integers, values: Integers, whole: int) -> Integers:
    """Section 2.1 of Hao et al. (2018) for strengths (n,) in units of which one is ``whole``, and values (n, m)."""
    return _read_items(pop, push, values, whole, lambda t: reversed(range(t)))


def queue(pop: Integers, push: Integers, values: Integers, whole: int) -> Integers:
    """Section 2.3 of Hao et al. (2018), for the same arguments."""
    return _read_items(pop, push, values, whole, range)


def _read_items(
    pop: Integers, push: Integers, values: Integers, whole: int, order: Callable[[int], Iterable[int]]
) -> Integers:
    """The readings of items that are popped and read in an order, given how many there are."""
    readings = np.zeros(values.shape, dtype=object)
    strengths: list[int] = []
    for t in range(len(values)):
        left = pop[t]
        for i in order(t):
            taken = min(strengths[i], left)
            strengths[i] -= taken
            left -= taken
        strengths.append(push[t])
        left = whole
        for i in order(t + 1):
            taken = min(strengths[i], left)
            readings[t] += taken * values[i]
            left -= taken
    return readings


def as_integers(x: Tensor) -> Integers:
    return x.numpy().astype(object)


def quotients(numerators: Integers, denominators: Integers | int) -> Tensor:
    """The nearest doubles to the quotients, and 0 for 0 / 0."""
    divide = np.frompyfunc(lambda a, b: a / b if b else 0.0, 2, 1)
    return torch.tensor(np.asarray(divide(numerators, denominators), dtype=np.float64))


def digits(x: Integers) -> int:
    """How many binary digits the largest of these integers has."""
    return max((abs(int(number)).bit_length() for number in x.flat), default=0)
