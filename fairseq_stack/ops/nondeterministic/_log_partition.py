"""The weight of all runs of the nondeterministic stack."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._backends import Backend, by_name, choose_backend, native_obstacle, triton_obstacle
from .._transforms import is_transformed
from .._undefined import from_then_on
from ._log_weights import (
    EXACT_RANGE,
    defined,
    first_configuration,
    join_transitions,
    largest_of,
    log_sum_exp,
    relative_to_largest,
    split_transitions,
    spread_of,
)
from ._native_columns import NativeColumns
from ._panel_columns import PanelColumns
from ._tracked_columns import TrackedColumns
from .gpu import nondeterministic_stack_triton
from .native import nondeterministic_stack_native
from .pytorch import nondeterministic_stack_pytorch
from .reference import log_partition_reference

SMALLEST_FACTOR = 1e-200  # Readings lose probabilities below 1e-308, which are negligible in greater factors.


def log_partition(
    push: Tensor, replace: Tensor, pop: Tensor, *, backend: str = "auto", window: int | None = None
) -> Tensor:
    """log Z_t, (B, n), as for ``nondeterministic_stack``: of the denominator of Eq. 29.

    The window, if any, is at most n.
    """
    compute = choose_backend("nondeterministic_stack", backend, BACKENDS, push.device)
    return compute(push, replace, pop, window=window).to(push.dtype)


def _log_partition(
    read: Callable[..., Any],
    kind: type[NativeColumns] | type[PanelColumns],
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    *,
    window: int | None,
) -> Tensor:
    """log Z_t, (B, n), in float64: by the stack readings of this function where they suffice, or by the steps that
    decoding takes, in columns of this kind.
    """
    sizes = push.shape[2], push.shape[3]
    logits, marks = defined(join_transitions(push, replace, pop).double())
    if torch.compiler.is_compiling() or is_transformed(logits):
        return _by_steps(TrackedColumns.initial, logits, *sizes, window) + from_then_on(marks)
    by_steps = partial(_by_steps, partial(kind.initial, weighs=True))
    if window is not None or not logits.numel() or (spread_of(relative_to_largest(logits)).range > EXACT_RANGE).any():
        return by_steps(logits, *sizes, window) + from_then_on(marks)
    log_totals, exact = _by_readings(read, logits, *sizes)
    if not exact.all():
        log_totals = log_totals.index_put((~exact,), by_steps(logits[~exact], *sizes, None))
    return log_totals + from_then_on(marks)


def _by_readings(read: Callable[..., Any], logits: Tensor, num_states: int, num_symbols: int) -> tuple[Tensor, Tensor]:
    """The same for log weights (B, n, C, 2 C + Q), as the sum of log (Z_t / Z_{t - 1}), and for which sequences it is
    exact, (B,).

    With v_0 = (1, 0) and all other v_t = (1, 1), the stack reading has two probabilities: that symbol y is on top in
    state r after t steps, and that it is and can be popped. Z_{t + 1} / Z_t is the expected weight of what follows.
    """
    kept, popped = relative_to_largest(logits).exp().tensor_split([-num_states], -1)
    weights = torch.stack([kept.sum(-1), popped.sum(-1)], -1)
    bottom, values = logits.new_tensor([1.0, 0.0]), torch.ones_like(weights[:, 1:, 0])
    transitions = split_transitions(logits[:, :-1], num_states, num_symbols)
    readings, _ = read(*transitions, values, bottom, return_weights=False)
    start = first_configuration(weights.shape[::2], logits).exp()[:, None, :, None] * bottom
    before = torch.cat([start, readings.flatten(2, 3)], 1)[:, : logits.shape[1]]
    factors = (before * weights).sum((-2, -1))
    exact = (factors >= SMALLEST_FACTOR).all(1)
    return (torch.where(exact[:, None], factors, 1).log() + largest_of(logits)).cumsum(1), exact


def _by_steps(
    initial: Callable[..., Any], logits: Tensor, num_states: int, num_symbols: int, window: int | None
) -> Tensor:
    """The same by steps, which keep the scale of the forward weights alpha[t], from these columns on."""
    no_vector = logits.new_zeros(len(logits), 1)
    columns = initial(no_vector, num_states, num_symbols, window, None)
    log_scale = logits.new_zeros(len(logits))
    log_totals = [logits.flatten(1)[:, :0]]
    for logits_t in logits.unbind(1):
        _, columns = columns.advance(logits_t, no_vector)
        log_scale = log_scale + largest_of(logits_t)
        log_totals.append((log_sum_exp(columns.log_alpha, (1,)) + log_scale)[:, None])
    return torch.cat(log_totals, 1)


BACKENDS = by_name(
    Backend("native", partial(_log_partition, nondeterministic_stack_native, NativeColumns), native_obstacle),
    Backend("triton", partial(_log_partition, nondeterministic_stack_triton, PanelColumns), triton_obstacle),
    Backend("pytorch", partial(_log_partition, nondeterministic_stack_pytorch, PanelColumns)),
    Backend("reference", log_partition_reference),
)
