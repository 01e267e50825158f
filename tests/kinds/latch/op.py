"""A latch holds one vector: r_t = (1 - g_t) r_{t-1} + g_t v_t, and r_0 = 0."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_stack.ops import Backend, Op


@dataclass(frozen=True)
class LatchState:
    """The latch after t steps, which holds r_t, (B, m)."""

    reading: Tensor

    def step(self, gate: Tensor, value: Tensor) -> LatchState:
        return LatchState(self.reading + gate.unsqueeze(1) * (value - self.reading))

    def reorder(self, index: Tensor) -> LatchState:
        return LatchState(self.reading.index_select(0, index))

    def detach(self) -> LatchState:
        return LatchState(self.reading.detach())


def latch_reference(gate: Tensor, values: Tensor) -> Tensor:
    state, readings = LatchState(torch.zeros_like(values[:, 0])), []
    for gate_t, value in zip(gate.unbind(1), values.unbind(1), strict=True):
        state = state.step(gate_t, value)
        readings.append(state.reading)
    return torch.stack(readings, 1)


def latch_at_once(gate: Tensor, values: Tensor) -> Tensor:
    length = gate.size(1)
    is_later = torch.ones(length, length, device=gate.device).tril(-1).bool()
    kept = torch.where(is_later, 1 - gate.unsqueeze(2), 1).cumprod(1).tril()
    return (kept * gate.unsqueeze(1)) @ values


BACKENDS = {"pytorch": Backend("pytorch", latch_at_once), "reference": Backend("reference", latch_reference)}


def latch(gate: Tensor, values: Tensor, *, backend: str = "auto") -> Tensor:
    """The readings (B, n, m) for gates (B, n) and vectors (B, n, m)."""
    readings: Tensor = BACKENDS["pytorch" if backend == "auto" else backend].compute(gate, values)
    return readings


def _example(random: Callable[..., Tensor], length: int) -> tuple[Tensor, ...]:
    return random(2, length), random(2, length, 3)


OP = Op("latch", latch, BACKENDS, _example)
