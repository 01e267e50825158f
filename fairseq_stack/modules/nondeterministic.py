"""Attention by the nondeterministic stack."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from fairseq_stack.modules.stack_attention import StackAttention, ValueActivation, at_least_float32
from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack


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
        options: ``output`` and ``bias``, see :class:`StackAttention`.
    """

    def __init__(
        self,
        model_size: int,
        num_states: int,
        num_symbols: int,
        size: int,
        value_activation: ValueActivation = "sigmoid",
        **options: bool,
    ) -> None:
        num_tops = num_states * num_symbols
        num_actions = num_tops * (2 * num_tops + num_states)
        super().__init__(model_size, num_actions, size, num_tops * size, value_activation, **options)
        self.num_states = num_states
        self.num_symbols = num_symbols
        self.bottom_logits = nn.Parameter(torch.empty(size).uniform_(-0.1, 0.1))

    def released_activation(self, values: Tensor) -> Tensor:
        return values.exp()

    def bottom(self) -> Tensor:
        """The bottom vector v_0, (m,)."""
        return at_least_float32(self.bottom_logits).sigmoid()

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
        """Split ``W_a x_t``, (..., d_a), into the log weights of transitions (Eqs. 9-11): push and replace
        (..., Q, S, Q, S), pop (..., Q, S, Q).
        """
        states, symbols = self.num_states, self.num_symbols
        tops = states * symbols
        by_top = actions.unflatten(-1, (states, symbols, 2 * tops + states))
        push, replace, pop = by_top.split([tops, tops, states], dim=-1)
        return push.unflatten(-1, (states, symbols)), replace.unflatten(-1, (states, symbols)), pop
