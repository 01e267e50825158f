"""What an LSTM with stacks keeps from step to step, and what each of its steps needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from torch import Tensor

from fairseq_stack.ops._states import Rows


@dataclass(frozen=True, eq=False)
class StackLSTMState(Rows):
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


class StepWeights(NamedTuple):
    """The weights of the first layer and of the stacks, in the form in which every step needs them.

    Attributes:
        recurrent: of [r_{t-1}; h_{t-1}] in the gates, (d_r + hidden_size, num_gates hidden_size).
        driving: the biases, (sum of sizes,), and the weights, (hidden_size, sum of sizes), of all projections of h_t
            that drive the stacks; None without stacks.
        sizes: the size of each projection.
    """

    recurrent: Tensor
    driving: tuple[Tensor, Tensor] | None
    sizes: list[int]
