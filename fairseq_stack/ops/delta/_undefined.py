"""Values that are not finite stay out of earlier readings and of their gradients, as for every stack."""

from __future__ import annotations

import functools
from collections.abc import Callable

from torch import Tensor

from .._undefined import finite, from_then_on, mark


def marks_of_updates(keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None) -> Tensor:
    """Marks for the columns of the memories S_1..S_n, (B, n, v): NaN from the first update on that is not finite."""
    marks = mark(keys).flatten(2).sum(2) + mark(strengths).sum(2)
    if log_decays is not None:
        marks = marks + mark(log_decays)
    return from_then_on(mark(values).sum(2) + marks.unsqueeze(2))


def causal(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Keep values that are not finite out of earlier readings; a query that is not finite affects its own reading."""

    @functools.wraps(compute)
    def compute_causally(
        queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None
    ) -> Tensor:
        marks = marks_of_updates(keys, values, strengths, log_decays) + mark(queries).sum(2, keepdim=True)
        decays = None if log_decays is None else finite(log_decays)
        return compute(*map(finite, (queries, keys, values, strengths)), decays) + marks

    return compute_causally
