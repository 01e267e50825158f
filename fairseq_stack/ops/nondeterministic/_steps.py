"""Whole sequences by steps in PyTorch, on any device: for limited memory, and for what the fast engines cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .._operators import gradients_inside
from .._transforms import is_transformed
from ._panel_columns import PanelColumns
from ._tracked_columns import TrackedColumns

Columns = TypeVar("Columns", PanelColumns, TrackedColumns)
Advance = Callable[[Columns, Tensor, Tensor], tuple[Tensor, Columns]]


def readings_by_steps(logits: Tensor, vectors: Tensor, num_states: int, window: int | None) -> Tensor:
    """The readings (B, n, C, m) in the dtype of the vectors.

    They are exact for all finite log weights: sequences for which float64 is not precise enough are computed again in
    logarithms.

    Args:
        logits: log weights (B, n, C, 2 C + Q).
        vectors: v_0..v_n, (B, n + 1, m).
        num_states: Q.
        window: D, or None for unlimited memory.
    """
    first = vectors[:, 0], num_states, logits.shape[2] // num_states, window, None
    if torch.compiler.is_compiling() or is_transformed(logits, vectors):
        readings, _ = _read(TrackedColumns.initial(*first), TrackedColumns.advance, logits, vectors)
        return readings
    columns = PanelColumns.initial(*first)
    assert isinstance(columns, PanelColumns)  # A start in one configuration fits into float64.
    readings, columns = _read(columns, PanelColumns.advance_in_float64, logits, vectors)
    assert columns.precision is not None
    exact = columns.precision.is_enough
    if exact.all():
        return readings
    by_steps = readings_by_steps(logits[exact], vectors[exact], num_states, window)
    in_logarithms = exact_readings(logits[~exact], vectors[~exact], num_states, window).to(vectors.dtype)
    return torch.empty_like(readings).index_put((exact,), by_steps).index_put((~exact,), in_logarithms)


def exact_readings(logits: Tensor, vectors: Tensor, num_states: int, window: int | None) -> Tensor:
    """The readings (B, n, C, m) in float64, in logarithms; slow. Arguments are as for ``readings_by_steps``."""

    def advance(columns: TrackedColumns, logits_t: Tensor, value: Tensor) -> tuple[Tensor, TrackedColumns]:
        # The backward pass computes each step again: what a step leaves for it takes O(t^2) memory.
        after: tuple[Tensor, TrackedColumns] = checkpoint(columns.advance, logits_t, value, use_reentrant=False)
        return after

    vectors = vectors.double()
    columns = TrackedColumns.initial(vectors[:, 0], num_states, logits.shape[2] // num_states, window, None)
    readings, _ = _read(columns, advance, logits, vectors)
    return readings


def _read(columns: Columns, advance: Advance[Columns], logits: Tensor, vectors: Tensor) -> tuple[Tensor, Columns]:
    """The readings (B, n, C, m), and the columns after all steps."""
    readings = [vectors.new_zeros(len(vectors), 0, logits.shape[2], vectors.shape[2])]
    for logits_t, value in zip(logits.unbind(1), vectors[:, 1:].unbind(1), strict=True):
        reading, columns = advance(columns, logits_t, value)
        readings.append(reading[:, None])
    return torch.cat(readings, 1), columns


def exact_gradients(
    grad: Tensor, logits: Tensor, vectors: Tensor, num_states: int, window: int | None
) -> tuple[Tensor, Tensor]:
    """The gradients of the log weights and of the vectors, given the gradient of the readings."""
    readings = partial(exact_readings, num_states=num_states, window=window)
    of_logits, of_vectors = gradients_inside(readings, (logits, vectors), grad.double())
    return of_logits, of_vectors
