"""Stacks beside attention: both read the same input, and a gate that begins closed lets the stack reading through.

A model that was trained without stacks, such as GPT-2, thus computes at first what it computed before. This is an
extension; no paper has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.modules.pushdown_attention import PushdownAttention
from fairseq_stack.modules.stateful_attention import StatefulAttention
from fairseq_stack.ops._states import Rows


class Gate(nn.Module):
    """Multiplies vectors by g in R^d, element by element. g is learned and begins at 0.

    Args:
        size: d.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size))
        self.close()

    def close(self) -> None:
        """Let nothing through."""
        nn.init.zeros_(self.weight)

    def forward(self, reading: Tensor) -> Tensor:
        """g times the reading (..., d)."""
        return self.weight * reading


@dataclass(frozen=True, eq=False)
class BesideState(Rows):
    """What attention and the stack beside it keep of the tokens that they have read. Immutable.

    Attributes:
        attention: the state of attention.
        stack: the state of the stack.
    """

    attention: Any
    stack: Any


class PushdownAttentionWithStack(PushdownAttention):
    """Attention that may see depths, with a stack beside it: its outputs plus the gated stack readings.

    Args:
        stack: stack attention of the same size.
        arguments: of :class:`PushdownAttention`, without the size.
    """

    def __init__(self, stack: StatefulAttention, *arguments: Any, **settings: Any) -> None:
        super().__init__(stack.model_size, *arguments, **settings)
        self.stack, self.gate = stack, Gate(stack.model_size)

    def forward(self, inputs: Tensor, tape: Tensor) -> Tensor:
        """As :meth:`PushdownAttention.forward`."""
        return super().forward(inputs, tape) + self.gate(self.stack(inputs))

    def initial_state(self, batch_size: int) -> BesideState:  # type: ignore[override]  # a pair of states
        """The state before the first token."""
        return BesideState(super().initial_state(batch_size), self.stack.initial_state(batch_size))

    def step(  # type: ignore[override]  # a pair of states
        self, inputs: Tensor, state: BesideState, row: Tensor
    ) -> tuple[Tensor, BesideState]:
        """As :meth:`PushdownAttention.step`."""
        attended, of_attention = super().step(inputs, state.attention, row)
        reading, of_stack = self.stack.step(inputs, state.stack)
        return attended + self.gate(reading), BesideState(of_attention, of_stack)
