"""What an LSTM with stacks keeps from step to step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class StackLSTMState:
    """A :class:`StackLSTM` after t steps, for a batch of B sequences; immutable.

    Attributes:
        hidden: h_t of all layers, the lowest first, (B, num_layers hidden_size).
        cell: c_t of all layers, likewise; zeros in a simple recurrent network.
        readings: the reading r_t of each stack, (B, reading_size).
        stacks: the state of each stack.
    """

    hidden: Tensor
    cell: Tensor
    readings: tuple[Tensor, ...]
    stacks: tuple[Any, ...]

    def reorder(self, index: Tensor) -> StackLSTMState:
        """The state whose batch row i is this state's row ``index[i]``: rows may be left out and repeated."""
        return StackLSTMState(
            self.hidden.index_select(0, index),
            self.cell.index_select(0, index),
            tuple(reading.index_select(0, index) for reading in self.readings),
            tuple(stack.reorder(index) for stack in self.stacks),
        )

    def detach(self) -> StackLSTMState:
        """The same state, through which no gradient flows back: the beginning of a segment."""
        return StackLSTMState(
            self.hidden.detach(),
            self.cell.detach(),
            tuple(reading.detach() for reading in self.readings),
            tuple(stack.detach() for stack in self.stacks),
        )
