"""Attention by the latch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_stack.modules import InspectedStack, StackAttention

from .op import LatchState, latch


class LatchAttention(StackAttention):
    """Attention by a latch with gates g_t = sigmoid(W_a x_t)."""

    def __init__(self, model_size: int, size: int, value_activation: Any = "sigmoid", **options: bool) -> None:
        super().__init__(model_size, 1, size, size, value_activation, **options)

    def released_activation(self, values: Tensor) -> Tensor:
        return values

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return actions.sigmoid().squeeze(-1), values

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return latch(*self.arguments(actions, values))

    def step_reading(self, actions: Tensor, values: Tensor, state: LatchState) -> tuple[Tensor, LatchState]:
        state = state.step(*self.arguments(actions, values))
        return state.reading, state

    def initial_state(self, batch_size: int) -> LatchState:
        return LatchState(self.initial_reading(batch_size))

    @torch.no_grad()
    def inspected(self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0) -> InspectedStack:
        units = torch.eye(len(inputs), dtype=torch.float64)
        gate, _ = self.arguments(self.actions(inputs).double()[None], units)
        return InspectedStack(layer, symbols, latch(gate, units[None])[0], {"write": gate[0]})
