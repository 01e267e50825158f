"""Inputs for the tests of the nondeterministic stack, and comparisons of what it makes of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_agree
from tests.ops.stacks import STACKS, automaton, fast_backends

ARGUMENTS = ("push", "replace", "pop", "values", "bottom")
initial_state, step_through = automaton, STACKS["nondeterministic"].step_through


def random_inputs(
    batch_size: int,
    length: int,
    num_states: int = 2,
    num_symbols: int = 3,
    size: int = 4,
    *,
    std: float = 1.0,
    masked: float = 0.0,
    batched_bottom: bool = False,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    source = batch_size, length, num_states, num_symbols
    weights = [
        torch.randn(*source, *target, dtype=torch.float64).mul(std)
        for target in ((num_states, num_symbols), (num_states, num_symbols), (num_states,))
    ]
    if masked:
        weights = [x.masked_fill(torch.rand_like(x) < masked, -torch.inf) for x in weights]
    values = torch.randn(batch_size, length, size, dtype=torch.float64)
    bottom = torch.randn(*((batch_size, size) if batched_bottom else (size,)), dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (*weights, values, bottom)]


def vectors_of(inputs: Sequence[Tensor]) -> Tensor:
    """v_0..v_n, (B, n + 1, m)."""
    values, bottom = inputs[3:]
    return torch.cat([bottom.expand(values.shape[0], -1)[:, None], values], 1)


def assert_equal_results(
    inputs: Sequence[Tensor],
    backend: str | None = None,
    tolerance: float = 1e-9,
    rounding: float = 0.0,
    window: int | None = None,
) -> None:
    """Readings and gradients of a backend, or of all fast ones, equal the reference's.

    Args:
        rounding: an absolute error allowed in gradients.
    """
    expected = nondeterministic_stack(*inputs, backend="reference", window=window)
    backends = fast_backends() if backend is None else [backend]
    readings = (nondeterministic_stack(*inputs, backend=chosen, window=window) for chosen in backends)
    assert_agree(readings, expected, inputs, tolerance, rounding=rounding, names=ARGUMENTS)


def weighted_sum(readings: Tensor) -> Tensor:
    """A loss, the same for equal readings."""
    weights = torch.randn(readings.shape, dtype=readings.dtype, generator=torch.Generator().manual_seed(1))
    return (readings * weights).sum()
