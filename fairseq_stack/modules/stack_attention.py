"""Stack attention: differentiable stacks as attention sublayers (DuSell & Chiang 2024, Section 5).

A recurrent controller drives its stack by the same projections, so a sublayer without W_y also serves there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from fairseq_stack.modules._padding import num_left, rotate
from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.inspected import InspectedStack
from fairseq_stack.ops import ControlledStack, computation_dtype, step_through

ValueActivation = Literal["sigmoid", "tanh", "released"]


class StackAttention(nn.Module, ABC):
    """The base of all kinds of stack attention: ``y_t = W_y r_t`` (Eq. 20) for the stack's readings r_t.

    A subclass computes the readings of a whole sequence, and of one step from a state. The output at t depends
    only on the inputs up to t. It also says what else is to be known of its stack: :meth:`arguments` for measurements,
    :meth:`inspected` for ``fairseq-stack inspect``, :meth:`initialize_as_in_paper` for ``--stack-init paper``.

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
        is_automaton: whether it is a nondeterministic stack.
        output_size: the size of the outputs: d_model, or d_r without W_y.
    """

    value_activations: ClassVar[tuple[str, ...]] = ("sigmoid", "released")
    is_automaton: ClassVar[bool] = False

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
        super().__init__()
        if value_activation not in self.value_activations:
            raise ValueError(f"value_activation: expected one of {self.value_activations}, got {value_activation!r}")
        self.model_size = model_size
        self.value_size = value_size
        self.reading_size = reading_size
        self.value_activation = value_activation
        self.output_size = model_size if output else reading_size
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

    def forward(self, inputs: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Map the inputs x_1..x_n, (B, n, d_model), to the outputs y_1..y_n, (B, n, output_size).

        Args:
            inputs: (B, n, d_model).
            padding_mask: (B, n), true at padding, on the left or on the right. The stack does not see it, and the
                outputs there are 0. None if there is none.

        Raises:
            ValueError: the inputs or the mask have another shape.
        """
        check_shape("inputs", inputs, "B", "n", self.model_size)
        if padding_mask is None:
            return self._outputs(inputs)
        check_shape("padding_mask", padding_mask, *inputs.shape[:2])
        # Padding does not affect outputs, but the gradients of weights add 0 times an input that may be NaN.
        inputs = inputs.masked_fill(padding_mask.unsqueeze(-1), 0)
        # On the right, padding comes too late to matter.
        lefts = num_left(padding_mask)
        outputs = rotate(self._outputs(rotate(inputs, lefts)), -lefts)
        return outputs.masked_fill(padding_mask.unsqueeze(-1), 0)

    def _outputs(self, inputs: Tensor) -> Tensor:
        return self._output(self.readings(*self._projected(inputs)), inputs)

    def _projected(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        return at_least_float32(self.actions(inputs)), self.pushed_values(inputs)

    def _output(self, readings: Tensor, inputs: Tensor) -> Tensor:
        output: Tensor = self.output(readings.flatten(2).to(inputs.dtype))
        return output

    def extend(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Take n steps: map the inputs x_{t+1}..x_{t+n} and the state after t steps to the outputs and the last state.

        From the initial state, superposition and the nondeterministic stack (by the compiled kernels, with unlimited
        memory and without gradients) take a few times as long as :meth:`forward`. All else takes as long as n steps.

        Args:
            inputs: (B, n, d_model).
            state: the state before them, from :meth:`initial_state`, :meth:`step` or this method.

        Returns:
            The outputs, (B, n, output_size), and the state after them.

        Raises:
            ValueError: the inputs have another shape, or not as many rows as the state.
        """
        check_shape("inputs", inputs, "B", "n", self.model_size)
        readings, state = self.extend_readings(*self._projected(inputs), state)
        return self._output(readings, inputs), state

    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Eq. 4: map the input x_t, (B, d_model), to y_t, (B, output_size), and the state before t to the one after.

        Raises:
            ValueError: the input has another shape, or not as many rows as the state.
        """
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

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the kind's op, for ``W_a x_t``, (B, n, d_a), and v_t, (B, n, m).

        Raises:
            NotImplementedError: the kind does not say, and cannot be measured.
        """
        raise NotImplementedError(f"{type(self).__name__} does not name the arguments of its op")

    @torch.no_grad()
    def inspected(
        self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0
    ) -> InspectedStack | None:
        """What the stack does while a model reads a sentence; None if the kind does not say.

        Args:
            inputs: (n, d_model).
            layer: the layer's name in the model.
            symbols: the names of the n inputs.
            num_runs: how many of the best runs of a nondeterministic stack are wanted.
        """
        return None

    def controlled(self) -> ControlledStack | None:
        """The stack as :func:`fairseq_stack.ops.stack_lstm` computes it, driven by the projections; None if it cannot.

        A subclass may compute something else, so it does not inherit the answer.
        """
        return None

    @abstractmethod
    def released_activation(self, values: Tensor) -> Tensor:
        """What the authors' public code does instead of the sigmoid of Eq. 17."""

    @abstractmethod
    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        """The readings r_1..r_n, (B, n, ...), for ``W_a x_t``, (B, n, d_a), and v_t, (B, n, m)."""

    @abstractmethod
    def step_reading(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """One step of :meth:`readings`: (B, d_a), (B, m) and a state to r_t, (B, ...), and the next state."""

    def extend_readings(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        """n steps of :meth:`readings`: (B, n, d_a), (B, n, m) and a state to r_{t+1}..r_{t+n}, and the last state."""
        nothing = values.new_empty(len(values), 0, self.reading_size)
        return step_through(self.step_reading, state, actions, values, nothing=nothing)

    @abstractmethod
    def initial_state(self, batch_size: int) -> Any:
        """The stack before the first step.

        States are immutable. They have ``reorder(index)``, the state whose batch row i is this one's row ``index[i]``.
        """


def draw_linear(linear: nn.Module, gain: float = 1.0) -> None:
    """Draw the weight of a fully connected layer, Xavier uniform; its bias, if it has one, is 0."""
    nn.init.xavier_uniform_(linear.get_parameter("weight"), gain=gain)
    if getattr(linear, "bias", None) is not None:
        nn.init.zeros_(linear.get_parameter("bias"))


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in the dtype that stacks compute in."""
    return tensor.to(computation_dtype(tensor.dtype))
