"""Stack attention: differentiable stacks as attention sublayers (DuSell & Chiang 2024, Section 5).

A recurrent controller drives its stack by the same projections, so a sublayer without W_y also serves there.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.stateful_attention import StatefulAttention, at_least_float32
from fairseq_stack.ops import ControlledStack, step_through
from fairseq_stack.ops._arguments import check_sizes

ValueActivation = Literal["sigmoid", "tanh", "released"]
PARAMETERS_OF_STACKS = "stack"
"""The attribute ``param_group`` of the parameters of a model's stacks, by which fairseq's optimizers group them."""


class StackAttention(StatefulAttention):
    """The base of all kinds of stack attention: ``y_t = W_y r_t`` (Eq. 20) for the stack's readings r_t.

    A subclass computes the readings of a whole sequence, and of one step from a state.

    Args:
        model_size: d_model, the size of inputs and outputs.
        num_actions: the size d_a of the action vector a_t.
        value_size: the size m of the pushed vectors v_t.
        reading_size: the size d_r of the readings r_t.
        value_activation: how v_t is made from ``W_v x_t``: ``"sigmoid"`` is the paper's Eq. 17; ``"released"`` is
            what the authors' public code does.
        output: whether there is W_y. A controller's stack has none: its outputs are the readings, flattened.
        bias: whether W_a and W_v have biases, which begin as 0. The papers' controllers have them.
        learned_values: whether there is W_v; otherwise v_t is made from x_t itself.

    Attributes:
        value_activations: what ``value_activation`` may be.
        output_size: d_model, or d_r without W_y.
    """

    value_activations: ClassVar[tuple[str, ...]] = ("sigmoid", "released")

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
        learned_values: bool = True,
    ) -> None:
        check_sizes(model_size=model_size, size=value_size)
        super().__init__(model_size, model_size if output else reading_size)
        if value_activation not in self.value_activations:
            raise ValueError(f"value_activation: expected one of {self.value_activations}, got {value_activation!r}")
        self.value_size = value_size
        self.reading_size = reading_size
        self.value_activation = value_activation
        self.actions = nn.Linear(model_size, num_actions, bias=bias)
        self.values = nn.Linear(model_size, value_size, bias=bias) if learned_values else nn.Identity()
        self.output = nn.Linear(reading_size, model_size, bias=False) if output else nn.Identity()
        self._draw_linears()

    def _draw_linears(self) -> None:
        for linear in (self.actions, self.values, self.output):
            if isinstance(linear, nn.Linear):
                draw_linear(linear)

    def initialize_as_in_paper(self) -> None:
        """Appendix D.2: the fully connected layers are Xavier uniform, with biases 0. Other parameters stay."""
        self._draw_linears()

    def _outputs(self, inputs: Tensor) -> Tensor:
        return self._output(self.readings_of(inputs), inputs)

    def readings_of(self, inputs: Tensor) -> Tensor:
        return self.readings(*self._projected(inputs))

    def _projected(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return at_least_float32(self.actions(inputs)), self.pushed_values(inputs)

    def _output(self, readings: Tensor, inputs: Tensor) -> Tensor:
        output: Tensor = self.output(readings.flatten(2).to(inputs.dtype))
        return output

    def extend(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """As :meth:`.StatefulAttention.extend`.

        From the initial state, superposition takes a few times as long as :meth:`forward`. All else takes as long as n
        steps.
        """
        check_shape("inputs", inputs, "B", "n", self.model_size)
        readings, state = self.extend_readings(*self._projected(inputs), state)
        return self._output(readings, inputs), state

    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        check_shape("inputs", inputs, "B", self.model_size)
        reading, state = self.projected_step(self.actions(inputs), self.values(inputs), state)
        return self.output(reading.to(inputs.dtype)), state

    def projected_step(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step from ``W_a x_t``, (B, d_a), and ``W_v x_t``, (B, m): the reading r_t, (B, d_r), and the next state.

        Without W_v, ``values`` is x_t.
        """
        reading, state = self.step_reading(at_least_float32(actions), self.activated(at_least_float32(values)), state)
        return reading.flatten(1), state

    @property
    def projections(self) -> tuple[nn.Linear, ...]:
        """W_a and, unless the stack has none, W_v."""
        return tuple(linear for linear in (self.actions, self.values) if isinstance(linear, nn.Linear))

    def pushed_values(self, inputs: Tensor) -> Tensor:
        """The pushed vectors v_t, (..., m), of inputs (..., d_model) (Eq. 17)."""
        return self.activated(at_least_float32(self.values(inputs)))

    def activated(self, values: Tensor) -> Tensor:
        """The pushed vectors v_t for ``W_v x_t``."""
        return values.sigmoid() if self.value_activation == "sigmoid" else self.released_activation(values)

    def initial_reading(self, batch_size: int) -> Tensor:
        """The reading r_0 of the stack before the first step, (B, d_r): 0 unless something lies on it."""
        return self.actions.weight.new_zeros(batch_size, self.reading_size)

    def arguments_of(self, inputs: Tensor) -> tuple[Tensor, ...]:
        return self.arguments(*self._projected(inputs))

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """As :meth:`arguments_of`, for ``W_a x_t``, (B, n, d_a), and v_t, (B, n, m)."""
        raise NotImplementedError(f"{type(self).__name__} does not name the arguments of its op")

    def controlled(self) -> ControlledStack | None:
        """The stack as :func:`fairseq_stack.ops.stack_lstm` computes it, driven by the projections; None if it cannot.

        A subclass may compute something else, so it does not inherit the answer.
        """
        return None

    def released_activation(self, values: Tensor) -> Tensor:
        """What the authors' public code does instead of the sigmoid of Eq. 17, if it differs."""
        return values.sigmoid()

    @abstractmethod
    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        """The readings r_1..r_n, (B, n, ...), for ``W_a x_t``, (B, n, d_a), and v_t, (B, n, m)."""

    def step_reading(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step of :meth:`readings`: (B, d_a), (B, m) and a state to r_t, (B, ...), and the next state."""
        reading, after = state.step(*self.arguments(actions, values))
        return reading, after

    def extend_readings(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """n steps of :meth:`readings`: (B, n, d_a), (B, n, m) and a state to r_{t+1}..r_{t+n}, and the last state."""
        nothing = values.new_empty(len(values), 0, self.reading_size)
        return step_through(self.step_reading, state, actions, values, nothing=nothing)


def draw_linear(linear: nn.Module, gain: float = 1.0) -> None:
    """Draw the weight of a fully connected layer, Xavier uniform; its bias, if it has one, is 0."""
    nn.init.xavier_uniform_(linear.get_parameter("weight"), gain=gain)
    if getattr(linear, "bias", None) is not None:
        nn.init.zeros_(linear.get_parameter("bias"))
