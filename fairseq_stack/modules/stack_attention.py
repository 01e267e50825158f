"""Stack attention: differentiable stacks as attention sublayers (DuSell & Chiang 2024, Section 5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from fairseq_stack.ops import (
    NondeterministicStackState,
    SuperpositionStackState,
    computation_dtype,
    nondeterministic_stack,
    superposition_stack,
)

ValueActivation = Literal["sigmoid", "released"]


class StackAttention(nn.Module, ABC):
    """What the two kinds of stack attention share: ``y_t = W_y r_t`` (Eq. 20) for the stack's readings r_t.

    A subclass computes the readings of a whole sequence, and of one step from a state. The output at t depends on
    the inputs up to t only. There are no biases.

    Args:
        model_size: d_model, the size of inputs and outputs.
        num_actions: the size d_a of the action vector a_t.
        value_size: the size m of the pushed vectors v_t.
        reading_size: the size d_r of the readings r_t.
        value_activation: how v_t is made from ``W_v x_t``: ``"sigmoid"`` is the paper's Eq. 17; ``"released"`` is
            what the authors' public code does.
    """

    def __init__(
        self,
        model_size: int,
        num_actions: int,
        value_size: int,
        reading_size: int,
        value_activation: ValueActivation = "sigmoid",
    ) -> None:
        super().__init__()
        if value_activation not in get_args(ValueActivation):
            raise ValueError(f"value_activation: expected one of {get_args(ValueActivation)}, got {value_activation!r}")
        self.model_size = model_size
        self.value_size = value_size
        self.value_activation = value_activation
        self.actions = nn.Linear(model_size, num_actions, bias=False)
        self.values = nn.Linear(model_size, value_size, bias=False)
        self.output = nn.Linear(reading_size, model_size, bias=False)
        for linear in (self.actions, self.values, self.output):
            nn.init.xavier_uniform_(linear.weight)

    def forward(self, inputs: Tensor) -> Tensor:
        """Map the inputs x_1..x_n, (B, n, d_model), to the outputs y_1..y_n, (B, n, d_model)."""
        readings = self.readings(_at_least_float32(self.actions(inputs)), self.pushed_values(inputs))
        return self.output(readings.flatten(2).to(inputs.dtype))

    def step(self, inputs: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Map the input x_t, (B, d_model), to the output y_t, (B, d_model), and the state before t to the one after."""
        actions = _at_least_float32(self.actions(inputs))
        reading, state = self.step_reading(actions, self.pushed_values(inputs), state)
        return self.output(reading.flatten(1).to(inputs.dtype)), state

    def pushed_values(self, inputs: Tensor) -> Tensor:
        """The pushed vectors v_t, (..., m), of inputs (..., d_model) (Eq. 17)."""
        values = _at_least_float32(self.values(inputs))
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


class SuperpositionStackAttention(StackAttention):
    """Attention by the superposition stack of Joulin & Mikolov (2015): Eqs. 5-8, 17, 18 and 20.

    The rows of W_a are push, no-op and pop, in that order.

    Args:
        model_size: d_model.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17), or ``"released"``: v_t = W_v x_t.
    """

    def __init__(self, model_size: int, size: int, value_activation: ValueActivation = "sigmoid") -> None:
        super().__init__(model_size, 3, size, size, value_activation)

    def released_activation(self, values: Tensor) -> Tensor:
        return values

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions.softmax(-1), values)

    def step_reading(
        self, actions: Tensor, values: Tensor, state: SuperpositionStackState
    ) -> tuple[Tensor, SuperpositionStackState]:
        return state.step(actions.softmax(-1), values)

    def initial_state(self, batch_size: int) -> SuperpositionStackState:
        weight = self.values.weight
        return SuperpositionStackState.initial(
            batch_size=batch_size,
            size=self.value_size,
            dtype=computation_dtype(weight.dtype),
            device=weight.device,
        )


class NondeterministicStackAttention(StackAttention):
    """Attention by the differentiable vector pushdown automaton: Eqs. 12, 17, 19 and 20.

    The rows of W_a are ordered by (q, x), row-major; for each, first the |Q||Gamma| pushes (r, y), then as many
    replaces (r, y), then the |Q| pops (r). The bottom vector is v_0 = sigmoid(w_v).

    Args:
        model_size: d_model.
        num_states: |Q|.
        num_symbols: |Gamma|.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17), or ``"released"``: v_t = exp(W_v x_t).
    """

    def __init__(
        self,
        model_size: int,
        num_states: int,
        num_symbols: int,
        size: int,
        value_activation: ValueActivation = "sigmoid",
    ) -> None:
        num_tops = num_states * num_symbols
        num_actions = num_tops * (2 * num_tops + num_states)
        super().__init__(model_size, num_actions, size, num_tops * size, value_activation)
        self.num_states = num_states
        self.num_symbols = num_symbols
        self.bottom_logits = nn.Parameter(torch.empty(size).uniform_(-0.1, 0.1))

    def released_activation(self, values: Tensor) -> Tensor:
        return values.exp()

    def bottom(self) -> Tensor:
        """The bottom vector v_0, (m,)."""
        return _at_least_float32(self.bottom_logits).sigmoid()

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        push, replace, pop = self.transitions(actions)
        return nondeterministic_stack(push, replace, pop, values, self.bottom())

    def step_reading(
        self, actions: Tensor, values: Tensor, state: NondeterministicStackState
    ) -> tuple[Tensor, NondeterministicStackState]:
        push, replace, pop = self.transitions(actions)
        return state.step(push, replace, pop, values)

    def initial_state(self, batch_size: int) -> NondeterministicStackState:
        return NondeterministicStackState.initial(
            self.bottom(), batch_size=batch_size, num_states=self.num_states, num_symbols=self.num_symbols
        )

    def transitions(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split ``W_a x_t``, (..., d_a), into log weights: push and replace (..., Q, S, Q, S), pop (..., Q, S, Q)."""
        states, symbols = self.num_states, self.num_symbols
        tops = states * symbols
        by_top = actions.unflatten(-1, (states, symbols, 2 * tops + states))
        push, replace, pop = by_top.split([tops, tops, states], dim=-1)
        return push.unflatten(-1, (states, symbols)), replace.unflatten(-1, (states, symbols)), pop


def _at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.to(computation_dtype(tensor.dtype))
