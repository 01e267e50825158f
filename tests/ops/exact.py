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
