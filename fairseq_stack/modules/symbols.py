"""Attention by the nondeterministic stack whose elements are symbols without vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.modules.nondeterministic import AutomatonStackAttention
from fairseq_stack.modules.stack_attention import at_least_float32
from fairseq_stack.ops import NondeterministicStackState


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
        original_bottom: as in 2020 and 2022, the bottom symbol can be neither popped, replaced nor uncovered: the first
            step pushes, and what it pushes can be replaced, but not popped. Otherwise the bottom symbol can be replaced
            and uncovered, as in 2023.
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
        original_bottom: bool = False,
        **options: bool,
    ) -> None:
        reading_size = num_states * num_symbols if states_in_reading else num_symbols
        super().__init__(
            model_size, num_states, num_symbols, 1, reading_size, "sigmoid", learned_values=False, **options
        )
        self.states_in_reading = states_in_reading
        self.original_bottom = original_bottom

    def activated(self, values: Tensor) -> Tensor:
        return values.new_ones(*values.shape[:-1], 1)

    def released_activation(self, values: Tensor) -> Tensor:
        return self.activated(values)

    def bottom(self) -> Tensor:
        return at_least_float32(self.actions.weight).new_ones(1)

    def reading(self, reading: Tensor) -> Tensor:
        return reading if self.states_in_reading else reading.sum(-3)

    def transitions_of_sequence(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        push, replace, pop = self.transitions(actions)
        if not self.original_bottom:
            return push, replace, pop
        first = _pushes_on_nothing(push[:, :1], pop[:, :1])
        begun = zip(first, (push, replace, pop), strict=True)
        push, replace, pop = (torch.cat([at_first, later[:, 1:]], dim=1) for at_first, later in begun)
        return push, replace, pop

    def initial_state(self, batch_size: int) -> Any:
        state = super().initial_state(batch_size)
        return _Nothing(state) if self.original_bottom else state


@dataclass(frozen=True, eq=False)
class _Nothing:
    """The stack with the original bottom before the first step; immutable.

    Attributes:
        stack: the stack with the bottom symbol, which the first push replaces.
    """

    stack: NondeterministicStackState

    def step(
        self, push: Tensor, replace: Tensor, pop: Tensor, value: Tensor
    ) -> tuple[Tensor, NondeterministicStackState]:
        return self.stack.step(*_pushes_on_nothing(push, pop), value)

    def reorder(self, index: Tensor) -> _Nothing:
        return _Nothing(self.stack.reorder(index))


def _pushes_on_nothing(push: Tensor, pop: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The transitions of the first step above the original bottom, as transitions with the bottom of 2023.

    What is pushed becomes the bottom of an ordinary stack, so pushing is replacing the bottom symbol.
    """
    return torch.full_like(push, -torch.inf), push, torch.full_like(pop, -torch.inf)
