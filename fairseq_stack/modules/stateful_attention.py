"""Causal self-attention whose past is a state: the base of stack attention, and of attention by the delta rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from fairseq_stack.modules._padding import padding_last
from fairseq_stack.modules._shapes import check_mask, check_shape
from fairseq_stack.modules.inspected import InspectedStack
from fairseq_stack.ops import computation_dtype


class StatefulAttention(nn.Module, ABC):
    """A sublayer whose output at t depends only on the inputs up to t, as a whole sequence or by steps of a state.

    A subclass computes whole sequences, and steps from a state. It also says what else is to be known of it:
    :meth:`arguments_of` for measurements, :meth:`inspected` for ``fairseq-stack inspect``,
    :meth:`initialize_as_in_paper` and :meth:`initialize_as_one_turn` for ``--stack-init``.

    Args:
        model_size: d_model, the size of the inputs.
        output_size: the size of the outputs.

    Attributes:
        is_automaton: whether it is a nondeterministic stack.
    """

    is_automaton: ClassVar[bool] = False

    def __init__(self, model_size: int, output_size: int) -> None:
        super().__init__()
        self.model_size = model_size
        self.output_size = output_size

    def forward(self, inputs: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Map the inputs x_1..x_n, (B, n, d_model), to the outputs y_1..y_n, (B, n, output_size).

        Args:
            inputs: (B, n, d_model).
            padding_mask: (B, n), true at padding, wherever it is. The sublayer does not see it, and the outputs there
                are 0. None if there is none.

        Raises:
            ValueError: the inputs or the mask have another shape, or the mask is not boolean.
        """
        check_shape("inputs", inputs, "B", "n", self.model_size)
        if padding_mask is None:
            return self._outputs(inputs)
        check_mask("padding_mask", padding_mask, inputs)
        # Padding does not affect outputs, but the gradients of weights add 0 times an input that may be NaN.
        inputs = inputs.masked_fill(padding_mask.unsqueeze(-1), 0)
        return padding_last(self._outputs, inputs, padding_mask).masked_fill(padding_mask.unsqueeze(-1), 0)

    @abstractmethod
    def _outputs(self, inputs: Tensor) -> Tensor:
        """As :meth:`forward`, without padding."""

    @abstractmethod
    def extend(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Take n steps: map the inputs x_{t+1}..x_{t+n} and the state after t steps to the outputs and the last state.

        Args:
            inputs: (B, n, d_model).
            state: the state before them, from :meth:`initial_state`, :meth:`step` or this method.

        Returns:
            The outputs, (B, n, output_size), and the state after them.

        Raises:
            ValueError: the inputs have another shape, or not as many rows as the state.
        """

    @abstractmethod
    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Map the input x_t, (B, d_model), to y_t, (B, output_size), and the state before t to the one after (Eq. 4).

        Raises:
            ValueError: the input has another shape, or not as many rows as the state.
        """

    @abstractmethod
    def initial_state(self, batch_size: int) -> Any:
        """The state before the first step.

        States are immutable. They have ``reorder(index)``, the state whose batch row i is this one's row ``index[i]``.
        """

    @abstractmethod
    def initialize_as_in_paper(self) -> None:
        """Draw the parameters again as in Appendix D.2 of DuSell & Chiang (2024), or leave them."""

    def initialize_as_one_turn(self) -> None:
        """Begin as a one-turn pushdown automaton, if the sublayer is an automaton."""

    def arguments_of(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """The arguments of the kind's op, for inputs (B, n, d_model).

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

    def inspected_heads(
        self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0
    ) -> list[InspectedStack]:
        """As :meth:`inspected`, for each head that has a stack; here there is one stack, or none."""
        stack = self.inspected(inputs, layer, symbols, num_runs)
        return [] if stack is None else [stack]

    @abstractmethod
    def readings_of(self, inputs: Tensor) -> Tensor:
        """What is read after each of the inputs (B, n, d_model), in the dtype of stacks, (B, n, ...)."""


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor in the dtype that stacks compute in."""
    return tensor.to(computation_dtype(tensor.dtype))
