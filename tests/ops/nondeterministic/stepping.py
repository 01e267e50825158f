"""Steps of the nondeterministic stack for tests."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState
from tests.ops.nondeterministic import inputs as inputs_of_stack


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
    return inputs_of_stack.random_inputs(
        batch_size, length, num_states, num_symbols, 4, std=std, masked=masked, dtype=dtype
    )


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
