"""Attention by the nondeterministic stack, with vectors and without."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from fairseq_stack.modules.inspected import InspectedAutomaton, posterior_actions
from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation, at_least_float32
from fairseq_stack.ops import (
    ControlledAutomaton,
    NondeterministicStackState,
    best_runs,
    transition_posterior,
)
from fairseq_stack.ops._arguments import check_sizes
from fairseq_stack.ops.nondeterministic import Transitions, nondeterministic_stack

BottomVector = Literal["learned", "zero", "one"]

_UNLIKELY = -6.0  # the initial log weight of what a one-turn automaton does not do


class AutomatonStackAttention(StackAttention):
    """Attention by a pushdown automaton, whose transitions a_t weighs: Eq. 12 and Eq. 19.

    The rows of W_a are ordered by (q, x), row-major; for each, first the |Q||Gamma| pushes (r, y), then as many
    replaces (r, y), then the |Q| pops (r).

    Args:
        model_size: d_model.
        num_states: |Q|.
        num_symbols: |Gamma|.
        size: the size m of the stack vectors.
        reading_size: the size d_r of the readings.
        value_activation: see :class:`StackAttention`.
        normalize_transitions: make the weights of the transitions that leave each (q, x) sum to 1.
        window: D for limited memory, as in DuSell & Chiang (2022): after t steps, the stack remembers only what was
            pushed in step t - D + 1 or later (gamma[i -> t] = 0 for t - i > D). None for unlimited memory.
        options: see :class:`StackAttention`.

    Attributes:
        reads_weights: whether readings need the weights of runs, and not only the average vectors.

    Raises:
        ValueError: the window is less than 1.
    """

    is_automaton = True
    reads_weights = False

    def __init__(
        self,
        model_size: int,
        num_states: int,
        num_symbols: int,
        size: int,
        reading_size: int,
        value_activation: ValueActivation = "sigmoid",
        *,
        normalize_transitions: bool = False,
        window: int | None = None,
        **options: bool,
    ) -> None:
        check_sizes(num_states=num_states, num_symbols=num_symbols, window=window)
        num_tops = num_states * num_symbols
        num_actions = num_tops * (2 * num_tops + num_states)
        super().__init__(model_size, num_actions, size, reading_size, value_activation, **options)
        self.num_states = num_states
        self.num_symbols = num_symbols
        self.normalize_transitions = normalize_transitions
        self.window = window

    @abstractmethod
    def bottom(self) -> Tensor:
        """The bottom vector v_0, (m,)."""

    def reading(self, reading: Tensor) -> Tensor:
        """What is read of the average vectors of all states and symbols, (..., Q, S, m)."""
        return reading

    def initialize_as_in_paper(self) -> None:
        """Appendix D.2, except that in the authors' code, the layers by which a controller drives it are no fully
        connected layers.
        """
        if isinstance(self.output, nn.Linear):
            super().initialize_as_in_paper()

    @torch.no_grad()
    def initialize_as_one_turn(self) -> None:
        """Begin as a one-turn automaton, which pushes, then keeps the top if it has states for that, then pops.

        Pushes within the first state have the bias -log |Gamma|: all symbols together weigh 1. The bias is 0 for
        replacements of the top by itself, within a middle state or from the state before it, and for pops from any
        state to the last one. All other biases are -6. Without inputs, runs thus turn at any step with about the same
        probability. W_a weighs a push by the pushed symbol alone, whatever the states and the top are.

        Raises:
            ValueError: W_a has no biases.
        """
        if self.actions.bias is None:
            raise ValueError(
                "bias: expected True (stack_bias in a transformer), since one-turn automata begin by their biases"
            )
        self._draw_linears()
        pushed, _, _ = self._by_operation(self.actions.weight.t())
        pushed.copy_(pushed[:, :1, :1, :1].expand_as(pushed).clone())
        push, replace, pop = self._by_operation(self.actions.bias.fill_(_UNLIKELY))
        push[0, :, 0] = -math.log(self.num_symbols)
        pop[..., -1] = 0
        for state in range(1, self.num_states - 1):
            for top in range(self.num_symbols):
                replace[state - 1 : state + 1, top, state, top] = 0

    def arguments(self, actions: Tensor, values: Tensor) -> tuple[Tensor, ...]:
        return (*self.transitions_of_sequence(actions), values, self.bottom())

    @torch.no_grad()
    def inspected(self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0) -> InspectedAutomaton:
        actions, length = self.actions(inputs[None]).double(), len(inputs)
        # Readings are linear in v_0..v_n: with unit vectors in their place, they are their own weights.
        units = torch.eye(length + 1, dtype=torch.float64, device=inputs.device)
        weights = self.averages(actions, units[None, 1:], units[0]).sum((-3, -2))
        transitions = self.transitions_of_sequence(actions)
        window = self.window if self.window is not None and self.window <= length else None
        no_vectors = weights.new_zeros(1, length, 1), weights.new_zeros(1)
        _, log_partitions = nondeterministic_stack(*transitions, *no_vectors, return_log_partition=True, window=window)
        log_partition = log_partitions[0, -1]
        posterior = Transitions(*(x[0].cpu() for x in transition_posterior(*transitions, window=window)))
        finds_runs = num_runs > 0 and window is None and bool(log_partition.isfinite())
        return InspectedAutomaton(
            layer,
            symbols,
            weights[0].cpu(),
            posterior_actions(posterior),
            Transitions(*(x[0].cpu() for x in transitions)),
            posterior,
            log_partition.item(),
            window,
            runs=tuple(best_runs(*transitions, count=num_runs)[0]) if finds_runs else (),
        )

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        return self.reading(self.averages(actions, values, self.bottom()))

    def averages(self, actions: Tensor, values: Tensor, bottom: Tensor) -> Tensor:
        """The average vectors of all states and symbols after each step, (B, n, Q, S, m) (Eq. 29).

        Args:
            actions: ``W_a x_t``, (B, n, d_a).
            values: v_1..v_n, (B, n, m), for any m.
            bottom: v_0, (m,).
        """
        push, replace, pop = self.transitions_of_sequence(actions)
        averages: Tensor = nondeterministic_stack(push, replace, pop, values, bottom, window=self.window)
        return averages

    def step_reading(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        reading, state = state.step_joined(self.log_weights(actions), values)
        return self.reading(reading), state

    def initial_state(self, batch_size: int) -> Any:
        return self.first_state(self.bottom(), batch_size)

    def first_state(self, bottom: Tensor, batch_size: int, start: Tensor | None = None) -> NondeterministicStackState:
        """The state before the first step, for v_0 (m,), and log weights (B, Q, S) of where runs start."""
        return NondeterministicStackState.initial(
            bottom,
            batch_size=batch_size,
            num_states=self.num_states,
            num_symbols=self.num_symbols,
            window=self.window,
            start=start,
            weighs=self.reads_weights,
        )

    def initial_reading(self, batch_size: int) -> Tensor:
        """r_0: the bottom vector, in state 0 with symbol 0 on top."""
        bottom = self.bottom().to(self.actions.weight.dtype)
        others = bottom.new_zeros(self.num_states * self.num_symbols - 1, self.value_size)
        by_top = torch.cat([bottom.unsqueeze(0), others]).unflatten(0, (self.num_states, self.num_symbols))
        return self.reading(by_top).flatten().expand(batch_size, -1)

    def log_weights(self, actions: Tensor) -> Tensor:
        """The log weights of all transitions for ``W_a x_t``, (..., d_a), in the same order."""
        if not self.normalize_transitions:
            return actions
        return actions.unflatten(-1, (self.num_states * self.num_symbols, -1)).log_softmax(-1).flatten(-2)

    def transitions(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split ``W_a x_t``, (..., d_a), into the log weights of transitions: push (Eq. 9) and replace (Eq. 10),
        (..., Q, S, Q, S), and pop (Eq. 11), (..., Q, S, Q).
        """
        return self._by_operation(self.log_weights(actions))

    def _by_operation(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Views of the numbers (..., d_a) of all transitions, in the shapes of :meth:`transitions`."""
        states, symbols = self.num_states, self.num_symbols
        tops = states * symbols
        by_top = actions.unflatten(-1, (states, symbols, 2 * tops + states))
        push, replace, pop = by_top.split([tops, tops, states], dim=-1)
        return push.unflatten(-1, (states, symbols)), replace.unflatten(-1, (states, symbols)), pop

    def transitions_of_sequence(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The transitions of all steps from the first one on, for ``W_a x_1..W_a x_n``, (B, n, d_a)."""
        return self.transitions(actions)


class NondeterministicStackAttention(AutomatonStackAttention):
    """Attention by the differentiable vector pushdown automaton: Eqs. 12, 17, 19 and 20.

    The rows of W_a are ordered as in :class:`AutomatonStackAttention`.

    Args:
        model_size: d_model.
        num_states: |Q|.
        num_symbols: |Gamma|.
        size: the size m of the stack vectors.
        value_activation: ``"sigmoid"`` (Eq. 17), or ``"released"``: v_t = exp(W_v x_t).
        bottom_vector: the vector v_0 at the bottom: ``"learned"``, sigmoid(w_v); ``"zero"``; or ``"one"``.
        window: see :class:`AutomatonStackAttention`.
        options: ``normalize_transitions``, see :class:`AutomatonStackAttention`; ``output`` and ``bias``, see
            :class:`StackAttention`.
    """

    def __init__(
        self,
        model_size: int,
        num_states: int,
        num_symbols: int,
        size: int,
        value_activation: ValueActivation = "sigmoid",
        *,
        bottom_vector: BottomVector = "learned",
        window: int | None = None,
        **options: bool,
    ) -> None:
        reading_size = num_states * num_symbols * size
        super().__init__(
            model_size, num_states, num_symbols, size, reading_size, value_activation, window=window, **options
        )
        if bottom_vector not in get_args(BottomVector):
            raise ValueError(f"bottom_vector: expected one of {get_args(BottomVector)}, got {bottom_vector!r}")
        self.bottom_vector = bottom_vector
        if bottom_vector == "learned":
            self.bottom_logits = nn.Parameter(torch.empty(size).uniform_(-0.1, 0.1))

    def controlled(self) -> ControlledAutomaton | None:
        if type(self) is not NondeterministicStackAttention:
            return None
        return ControlledAutomaton(
            self.num_states,
            self.num_symbols,
            self.value_size,
            "sigmoid" if self.value_activation == "sigmoid" else "exponential",
            self.window,
            self.normalize_transitions,
        )

    def released_activation(self, values: Tensor) -> Tensor:
        return values.exp()

    def bottom(self) -> Tensor:
        """The bottom vector v_0, (m,)."""
        if self.bottom_vector == "learned":
            return at_least_float32(self.bottom_logits).sigmoid()
        weight = at_least_float32(self.actions.weight)
        return weight.new_full((self.value_size,), float(self.bottom_vector == "one"))
