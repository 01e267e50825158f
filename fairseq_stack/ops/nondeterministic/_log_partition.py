"""The weight of all runs of the nondeterministic stack, by the steps that decoding takes: exact, but not the fastest.

The steps keep the scale of the forward weights alpha[t], which the readings do not depend on.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from .._backends import Backend, by_name, choose_backend, native_obstacle, triton_obstacle
from .._transforms import is_transformed
from ._log_weights import join_transitions, largest_of, log_sum_exp
from ._native_columns import NativeColumns
from ._panel_columns import PanelColumns
from ._tracked_columns import TrackedColumns
from .reference import log_partition_reference

Kind = type[NativeColumns] | type[PanelColumns]


def log_partition(
    push: Tensor, replace: Tensor, pop: Tensor, *, backend: str = "auto", window: int | None = None
) -> Tensor:
    """log Z_t, (B, n), as for ``nondeterministic_stack``: of the denominator of Eq. 29.

    The window, if any, is at most n.
    """
    compute = choose_backend("nondeterministic_stack", backend, BACKENDS, push.device)
    return compute(push, replace, pop, window=window).to(push.dtype)


def _by_steps(kind: Kind, push: Tensor, replace: Tensor, pop: Tensor, *, window: int | None) -> Tensor:
    """log Z_t, (B, n), in float64, by columns of this kind."""
    logits = join_transitions(push, replace, pop).double()
    no_vector = logits.new_zeros(len(logits), 1)
    first = no_vector, push.shape[2], push.shape[3], window, None
    columns: NativeColumns | PanelColumns | TrackedColumns
    if torch.compiler.is_compiling() or is_transformed(logits):
        columns = TrackedColumns.initial(*first)
    else:
        columns = kind.initial(*first, weighs=True)
    log_scale = logits.new_zeros(len(logits))
    log_totals = [logits.flatten(1)[:, :0]]
    for logits_t in logits.unbind(1):
        _, columns = columns.advance(logits_t, no_vector)
        assert columns.log_alpha is not None
        log_scale = log_scale + largest_of(logits_t)
        log_totals.append((log_sum_exp(columns.log_alpha, (1,)) + log_scale)[:, None])
    return torch.cat(log_totals, 1)


BACKENDS = by_name(
    Backend("native", partial(_by_steps, NativeColumns), native_obstacle),
    Backend("triton", partial(_by_steps, PanelColumns), triton_obstacle),
    Backend("pytorch", partial(_by_steps, PanelColumns)),
    Backend("reference", log_partition_reference),
)
