"""Stack attention: differentiable stacks as attention sublayers (DuSell & Chiang 2024, Section 5).

A recurrent controller drives its stack by the same projections, so a sublayer without W_y serves there, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, get_args

from torch import Tensor, nn

from fairseq_stack.ops import computation_dtype

ValueActivation = Literal["sigmoid", "released"]


class StackAttention(nn.Module, ABC):
    """The base of all kinds of stack attention: ``y_t = W_y r_t`` (Eq. 20) for the stack's readings r_t.

    A subclass computes the readings of a whole sequence, and of one step from a state. The output at t depends
    only on the inputs up to t.

    Args:
        model_size: d_model, the size of inputs and outputs.
        num_actions: the size d_a of the action vector a_t.
        value_size: the size m of the pushed vectors v_t.
        reading_size: the size d_r of the readings r_t.
        value_activation: how v_t is made from ``W_v x_t``: ``"sigmoid"`` is the paper's Eq. 17; ``"released"`` is
            what the authors' public code does.
        output: whether there is W_y. A controller's stack has none: its outputs are the readings, flattened.
        bias: whether W_a and W_v have biases, which begin as 0. The papers' controllers have them.

    Attributes:
        output_size: the size of the outputs: d_model, or d_r without W_y.
    """

    def __init__(
        self,
        model_size: int,
        num_actions: int,
        value_size: int,
        reading_size: int,
        value_activation: ValueActivation = "sigmoid",
        *,
        output: bool = True,
        bias: bool = False,
    ) -> None:
        super().__init__()
        if value_activation not in get_args(ValueActivation):
            raise ValueError(f"value_activation: expected one of {get_args(ValueActivation)}, got {value_activation!r}")
        self.model_size = model_size
        self.value_size = value_size
        self.value_activation = value_activation
        self.output_size = model_size if output else reading_size
        self.actions = nn.Linear(model_size, num_actions, bias=bias)
        self.values = nn.Linear(model_size, value_size, bias=bias)
        self.output = nn.Linear(reading_size, model_size, bias=False) if output else nn.Identity()
        for linear in (self.actions, self.values, self.output):
            if isinstance(linear, nn.Linear):
                nn.init.xavier_uniform_(linear.weight)
                if linear.bias is not None:
                    nn.init.zeros_(linear.bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map the inputs x_1..x_n, (B, n, d_model), to the outputs y_1..y_n, (B, n, output_size)."""
        readings = self.readings(at_least_float32(self.actions(inputs)), self.pushed_values(inputs))
        return self.output(readings.flatten(2).to(inputs.dtype))

    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Eq. 4: map the input x_t, (B, d_model), to y_t, (B, output_size), and the state before t to the one after."""
        actions = at_least_float32(self.actions(inputs))
        reading, state = self.step_reading(actions, self.pushed_values(inputs), state)
        return self.output(reading.flatten(1).to(inputs.dtype)), state

    def pushed_values(self, inputs: Tensor) -> Tensor:
        """The pushed vectors v_t, (..., m), of inputs (..., d_model) (Eq. 17)."""
        values = at_least_float32(self.values(inputs))
        return values.sigmoid() if self.value_activation == "sigmoid" else self.released_activation(values)

    @abstractmethod
    def released_activation(self, values: Tensor) -> Tensor:
        """What the authors' public code does instead of the sigmoid of Eq. 17."""

    @abstractmethod
    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        """The readings r_1..r_n, (B, n, ...), for ``W_a x_t``, (B, n, d_a), and v_t, (B, n, m)."""

    @abstractmethod
    def step_reading(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step of :meth:`readings`: (B, d_a), (B, m) and a state to r_t, (B, ...), and the next state."""

    @abstractmethod
    def initial_state(self, batch_size: int) -> Any:
        """The stack before the first step; it has ``step``, which leaves it as it is, and ``reorder(index)``."""


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in the dtype that stacks compute in."""
    return tensor.to(computation_dtype(tensor.dtype))
