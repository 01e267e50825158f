"""Values that are not finite, such as garbage at padding, stay out of earlier readings and of their gradients.

Earlier readings do not depend on such a value, but computing them multiplies it by weights or derivatives that are 0,
and 0 * NaN = NaN. The stacks therefore compute with an ordinary number in its place, and add *marks* to the readings
that depend on it: a mark is NaN or 0. The compiled kernels do the same on their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch import Tensor


def finite(x: Tensor) -> Tensor:
    """``x`` with every value that is not finite replaced by 0, whose gradient is 0."""
    return x.nan_to_num(0, 0, 0)


def marks_of(values: Tensor, *others: Tensor) -> Tensor:
    """Marks for the components of the values of a step: NaN where they or ``others`` are not finite.

    Args:
        values: (B, n, m), or (B, m) for one step.
        others: (B, n, ...), or (B, ...); a number that is not finite here marks all components of its step.
    """
    marks = mark(values)
    for x in others:
        marks = marks + mark(x).unsqueeze(-1).flatten(values.dim() - 1).sum(-1, keepdim=True)
    return marks


def mark(x: Tensor) -> Tensor:
    """A mark for each number: NaN where it is not finite."""
    x = x.detach()
    return x - x


def from_then_on(marks: Tensor) -> Tensor:
    """Marks for steps (B, n, ...): NaN from the first step of each sequence on that has the mark NaN."""
    return marks.cumsum(1)


def causal(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Keep values that are not finite out of earlier steps.

    Args:
        compute: the readings (B, n, m) of a stack, given arguments (B, n, ...), of which the last are the values
            (B, n, m). Keywords are numbers or None, or tensors (B, n) of which the readings of a step depend on that
            step's.
    """

    @functools.wraps(compute)
    def compute_causally(*arguments: Tensor, **of_readings: float | Tensor | None) -> Tensor:
        marks = from_then_on(marks_of(arguments[-1], *arguments[:-1]))
        tensors = {name: x for name, x in of_readings.items() if isinstance(x, Tensor)}
        for x in tensors.values():
            marks = marks + mark(x).unsqueeze(2)
        of_readings |= {name: finite(x) for name, x in tensors.items()}
        return compute(*map(finite, arguments), **of_readings) + marks

    return compute_causally
