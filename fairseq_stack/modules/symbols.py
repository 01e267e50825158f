"""Attention by the nondeterministic stack whose elements are symbols without vectors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.modules.inspected import InspectedAutomaton, posterior_actions
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention
from fairseq_stack.modules.stack_attention import at_least_float32
from fairseq_stack.ops import ControlledAutomaton, NondeterministicStackState, step_through
from fairseq_stack.ops.nondeterministic import Transitions


class SymbolStackAttention(AutomatonStackAttention):
    """Attention by the pushdown automaton of the NS-RNN (DuSell & Chiang 2020) and of the RNS-RNN (2022).

    The reading is the distribution over the states and the symbols on top: with vectors of size 1 that are all 1, the
    reading of the vector automaton is that. The rows of W_a are ordered as in :class:`AutomatonStackAttention`; there
    is no W_v.

    Args:
        model_size: d_model.
        num_states: |Q|.
        num_symbols: |Gamma|.
        states_in_reading: read a distribution over states and symbols (2022); otherwise over symbols (2020).
        read_log_weights: read tanh(log w) instead of a distribution, where w is ``alpha[t][r, y]`` (Eq. 27), the weight
            of all runs that end in a state with a symbol on top, or its sum over states. Without a run it is -1.
        original_bottom: as in 2020 and 2022, the bottom symbol can be neither popped, replaced nor uncovered: the first
            step pushes, and what it pushes can be replaced, but not popped. Otherwise the bottom symbol can be replaced
            and uncovered, as in 2023.
        window: see :class:`AutomatonStackAttention`.
        options: ``normalize_transitions``, see :class:`AutomatonStackAttention`; ``output`` and ``bias``, see
            :class:`StackAttention`.
    """

    def __init__(
        self,
        model_size: int,
        num_states: int,
        num_symbols: int,
        *,
        states_in_reading: bool = True,
        read_log_weights: bool = False,
        original_bottom: bool = False,
        window: int | None = None,
        **options: bool,
    ) -> None:
        reading_size = num_states * num_symbols if states_in_reading else num_symbols
        super().__init__(
            model_size,
            num_states,
            num_symbols,
            1,
            reading_size,
            "sigmoid",
            learned_values=False,
            window=window,
            **options,
        )
        self.states_in_reading = states_in_reading
        self.reads_weights = read_log_weights
        self.original_bottom = original_bottom

    def controlled(self) -> ControlledAutomaton | None:
        if type(self) is not SymbolStackAttention or self.reads_weights:
            return None
        return ControlledAutomaton(
            self.num_states,
            self.num_symbols,
            1,
            "ones",
            self.window,
            self.normalize_transitions,
            self.original_bottom,
            self.states_in_reading,
        )

    def activated(self, values: Tensor) -> Tensor:
        return values.new_ones(*values.shape[:-1], 1)

    def bottom(self) -> Tensor:
        return at_least_float32(self.actions.weight).new_ones(1)

    def reading(self, reading: Tensor) -> Tensor:
        return reading if self.states_in_reading else reading.sum(-3)

    def inspected(self, inputs: Tensor, layer: str, symbols: tuple[str, ...], num_runs: int = 0) -> InspectedAutomaton:
        stack = super().inspected(inputs, layer, symbols, num_runs)
        if stack.window is None or not self.original_bottom:
            return stack
        # What the first step pushes replaces a bottom of step 0, which would be forgotten one step too early.
        posterior = Transitions(*(x * torch.nan for x in stack.posterior))
        actions = posterior_actions(posterior)
        return dataclasses.replace(stack, posterior=posterior, actions=actions, log_partition=torch.nan)

    def readings(self, actions: Tensor, values: Tensor) -> Tensor:
        if not self.reads_weights or actions.size(1) == 0:
            return super().readings(actions, values)
        readings, _ = self.extend_readings(actions, values, self.initial_state(len(actions)))
        return readings

    def averages(self, actions: Tensor, values: Tensor, bottom: Tensor) -> Tensor:
        if not self.original_bottom or self.window is None or self.window > actions.size(1):
            return super().averages(actions, values, bottom)
        # As a replacement of the bottom of step 0, what the first step pushes would be forgotten one step too early.
        state = _Nothing(self, bottom, len(actions))
        averages, _ = step_through(
            lambda weights, value, state: state.step_joined(weights, value),
            state, self.log_weights(actions), values, nothing=values[:, :0],
        )  # fmt: skip
        return averages

    def step_reading(self, actions: Tensor, values: Tensor, state: Any) -> tuple[Tensor, Any]:
        reading, state = super().step_reading(actions, values, state)
        return self._squashed(state.log_weights) if self.reads_weights else reading, state

    def initial_reading(self, batch_size: int) -> Tensor:
        distribution = super().initial_reading(batch_size)
        return distribution - 1 if self.reads_weights else distribution  # tanh(log 1) = 0, tanh(log 0) = -1

    def _squashed(self, log_weights: Tensor) -> Tensor:
        """The reading for log alpha[t], (B, Q, S)."""
        return (log_weights if self.states_in_reading else log_weights.logsumexp(1)).tanh()

    def transitions_of_sequence(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        push, replace, pop = self.transitions(actions)
        if self.original_bottom:  # the first step replaces an ordinary bottom by what it pushes
            never = torch.full_like(push[:, :1], -torch.inf)
            replace = torch.cat([push[:, :1], replace[:, 1:]], dim=1)
            push = torch.cat([never, push[:, 1:]], dim=1)
            pop = torch.cat([never[..., 0], pop[:, 1:]], dim=1)
        return push, replace, pop

    def initial_state(self, batch_size: int) -> Any:
        if self.original_bottom:
            return _Nothing(self, self.bottom(), batch_size)
        return super().initial_state(batch_size)


@dataclass(frozen=True, eq=False)
class _Nothing:
    """The stack with the original bottom before the first step, whose pushes become the bottom of an ordinary stack.

    Its bottom counts as pushed in its step 0, which is the first step here, so the window D is the same for both.

    Attributes:
        attention: the sublayer.
        bottom: the vector of that stack's bottom, (m,).
        batch_size: B.
    """

    attention: SymbolStackAttention
    bottom: Tensor
    batch_size: int

    def step_joined(self, transitions: Tensor, value: Tensor) -> tuple[Tensor, NondeterministicStackState]:
        """The first step, with the log weights of :meth:`AutomatonStackAttention.log_weights`, (B, d_a)."""
        top = self.attention.num_states, self.attention.num_symbols
        pushes = transitions[:, : top[0] * top[1]]  # from state 0 and symbol 0
        start = pushes.unflatten(1, top)
        state = self.attention.first_state(self.bottom, self.batch_size, start)
        return pushes.softmax(1).view(*start.shape, 1) * self.bottom, state

    def reorder(self, index: Tensor) -> _Nothing:
        return dataclasses.replace(self, batch_size=len(index))

    def detach(self) -> _Nothing:
        return self
