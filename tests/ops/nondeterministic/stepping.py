"""Steps of the nondeterministic stack for tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState


def random_inputs(
    batch_size: int,
    length: int,
    num_states: int = 2,
    num_symbols: int = 3,
    *,
    std: float = 1.0,
    masked: float = 0.0,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """The arguments of ``nondeterministic_stack``, with vectors of size 4 and one bottom vector for all."""
    source = batch_size, length, num_states, num_symbols
    weights = [
        torch.randn(*source, *target, dtype=torch.float64).mul(std)
        for target in ((num_states, num_symbols), (num_states, num_symbols), (num_states,))
    ]
    if masked:
        weights = [x.masked_fill(torch.rand_like(x) < masked, -torch.inf) for x in weights]
    values, bottom = torch.randn(batch_size, length, 4), torch.randn(4)
    return [x.to(dtype).requires_grad_() for x in (*weights, values, bottom)]


def initial_state(inputs: Sequence[Tensor]) -> NondeterministicStackState:
    batch_size, _, num_states, num_symbols = inputs[0].shape[:4]
    return NondeterministicStackState.initial(
        inputs[4], batch_size=batch_size, num_states=num_states, num_symbols=num_symbols
    )


def step_through(
    inputs: Sequence[Tensor], state: NondeterministicStackState
) -> tuple[Tensor, NondeterministicStackState]:
    """The readings of all steps, and the state after them."""
    readings = []
    for t in range(inputs[0].shape[1]):
        reading, state = state.step(*(x[:, t] for x in inputs[:4]))
        readings.append(reading)
    return torch.stack(readings, 1), state


def weighted_sum(readings: Tensor) -> Tensor:
    """A loss, the same for equal readings."""
    weights = torch.randn(readings.shape, dtype=readings.dtype, generator=torch.Generator().manual_seed(1))
    return (readings * weights).sum()
