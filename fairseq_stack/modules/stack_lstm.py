"""LSTMs with differentiable stacks: the controller drives its stacks and reads them (DuSell & Chiang 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention
from fairseq_stack.modules.stack_attention import StackAttention
from fairseq_stack.ops import stack_lstm, stack_lstm_is_compiled

_LARGE = 2**20  # weights that leave the caches between two steps: PyTorch's products for the whole batch are faster


@dataclass(frozen=True, eq=False)
class StackLSTMState:
    """A :class:`StackLSTM` after t steps, for a batch of B sequences; immutable.

    Attributes:
        hidden: h_t, (B, hidden_size).
        cell: c_t, (B, hidden_size).
        readings: the reading r_t of each stack, (B, reading_size).
        stacks: the state of each stack.
    """

    hidden: Tensor
    cell: Tensor
    readings: tuple[Tensor, ...]
    stacks: tuple[Any, ...]

    def reorder(self, index: Tensor) -> StackLSTMState:
        """The state whose batch row i is this state's row ``index[i]``: rows may be left out and repeated."""
        return StackLSTMState(
            self.hidden.index_select(0, index),
            self.cell.index_select(0, index),
            tuple(reading.index_select(0, index) for reading in self.readings),
            tuple(stack.reorder(index) for stack in self.stacks),
        )

    def detach(self) -> StackLSTMState:
        """The same state, through which no gradient flows back: the beginning of a segment."""
        return StackLSTMState(
            self.hidden.detach(),
            self.cell.detach(),
            tuple(reading.detach() for reading in self.readings),
            tuple(stack.detach() for stack in self.stacks),
        )


class StackLSTM(nn.Module):
    """An LSTM of one layer that controls any number of stacks side by side.

    With the input x_t and the readings r_{t-1} of all stacks, concatenated,

        i_t, f_t, g_t, o_t = W [x_t; r_{t-1}; h_{t-1}] + b    (gates, in this order)
        c_t = sigmoid(f_t) * c_{t-1} + sigmoid(i_t) * tanh(g_t)
        h_t = sigmoid(o_t) * tanh(c_t)

    and each stack takes one step, driven by h_t, to r_t. h_0 and c_0 are 0, and r_0 is the reading of the initial
    stack. There is one bias vector.

    Args:
        input_size: the size d of x_t.
        hidden_size: the size of h_t and c_t.
        stacks: stacks for inputs of size ``hidden_size``, built with ``output=False`` (and with ``bias=True`` in the
            papers); none make a plain LSTM.
        recurrent_dropout: the probability p of dropping a component of tanh(g_t), for each step anew. As in the code of
            Semeniuta et al. (2016), what is kept is not scaled in training; in evaluation all components are multiplied
            by 1 - p.

    Raises:
        ValueError: a stack is for inputs of another size, or has an output of its own.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        stacks: Sequence[StackAttention] = (),
        recurrent_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        for stack in stacks:
            if stack.model_size != hidden_size:
                raise ValueError(f"stacks: expected model_size {hidden_size} like hidden_size, got {stack.model_size}")
            if not isinstance(stack.output, nn.Identity):
                raise ValueError("stacks: expected stacks built with output=False, since the gates read the readings")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.recurrent_dropout = recurrent_dropout
        self.stacks = nn.ModuleList(stacks)
        self.gates = nn.Linear(input_size + sum(stack.reading_size for stack in stacks) + hidden_size, 4 * hidden_size)
        for parameter in self.gates.parameters():
            nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)

    def forward(
        self, inputs: Tensor, state: StackLSTMState | None = None, *, return_state: bool = True
    ) -> tuple[Tensor, StackLSTMState | None]:
        """Map x_1..x_n to h_1..h_n.

        From the initial state, all steps are one compiled operation; if the last state is wanted, only in evaluation
        without gradients. It needs the CPU, the compiled kernels, float32 or float64, stacks that it knows, and less
        than 512 hidden units. Otherwise, and where autocast or ``torch.func`` changes the computation, the steps are
        taken one by one.

        Args:
            inputs: (B, n, d); or (B, n), integers from 0 to d - 1 that stand for one-hot vectors, and -1 for the vector
                of zeros.
            state: where to start (default: the initial state).
            return_state: whether the state after the last step is wanted.

        Returns:
            The outputs h_1..h_n, (B, n, hidden_size), and the state after the last step, or None if it is not wanted.

        Raises:
            ValueError: the inputs have another shape, or the state another batch size.
        """
        self._check(inputs, "B" if state is None else len(state.hidden), "n")
        gates, weights = self._input_gates(inputs), self._weights()
        if state is None and not (return_state and (self.training or torch.is_grad_enabled())):
            computed = self._all_steps(gates, weights)
            if computed is not None:
                return computed, self._state_after(gates, weights, computed) if return_state else None
        if state is None:
            state = self.initial_state(inputs.size(0))
        outputs = []
        for gates_t in gates.unbind(1):
            state = self._advance(gates_t, weights, state)
            outputs.append(state.hidden)
        hidden = torch.stack(outputs, dim=1) if outputs else gates[..., : self.hidden_size]
        return hidden, state if return_state else None

    def step(self, inputs: Tensor, state: StackLSTMState) -> tuple[Tensor, StackLSTMState]:
        """One step of :meth:`forward`: x_t, (B, d) or (B,), and the state before t to h_t and the state after t.

        Raises:
            ValueError: the input has another shape.
        """
        self._check(inputs, len(state.hidden))
        state = self._advance(self._input_gates(inputs), self._weights(), state)
        return state.hidden, state

    def initial_state(self, batch_size: int) -> StackLSTMState:
        """The state before the first step."""
        zeros = self.gates.weight.new_zeros(batch_size, self.hidden_size)
        stacks = self._stacks()
        return StackLSTMState(
            zeros,
            zeros,
            tuple(stack.initial_reading(batch_size) for stack in stacks),
            tuple(stack.initial_state(batch_size) for stack in stacks),
        )

    def _stacks(self) -> list[StackAttention]:
        return [cast(StackAttention, stack) for stack in self.stacks]

    def _check(self, inputs: Tensor, *shape: int | str) -> None:
        check_shape("inputs", inputs, *shape, *([self.input_size] if inputs.is_floating_point() else []))

    def _input_gates(self, inputs: Tensor) -> Tensor:
        """What x_t and the bias contribute to the gates, (..., 4 hidden_size)."""
        weight = self.gates.weight[:, : self.input_size]
        if inputs.is_floating_point():
            return linear(inputs, weight, self.gates.bias)
        columns = embedding(inputs.clamp_min(0), weight.t())
        return columns * inputs.ge(0).unsqueeze(-1).to(columns.dtype) + self.gates.bias

    def _all_steps(self, gates: Tensor, weights: _Weights) -> Tensor | None:
        """h_1..h_n, in one operation, or None if it cannot compute them."""
        stacks = self._stacks()
        controlled = [x for x in (stack.controlled() for stack in stacks) if x is not None]
        if len(controlled) < len(stacks) or weights.recurrent.numel() >= _LARGE:
            return None
        nothing, automata = gates.new_empty(0), [x for x in stacks if isinstance(x, AutomatonStackAttention)]
        bias, driving = weights.driving or (nothing, gates.new_empty(self.hidden_size, 0))
        reading = torch.cat([nothing, *(stack.initial_reading(1)[0] for stack in stacks)])
        bottoms = torch.cat([nothing, *(stack.bottom() for stack in automata)])
        if not stack_lstm_is_compiled(gates, weights.recurrent, driving, bias, reading, bottoms):
            return None
        kept = self._kept(gates)
        return stack_lstm(gates, weights.recurrent.t(), controlled, driving.t(), bias, reading, bottoms, kept=kept)

    def _state_after(self, input_gates: Tensor, weights: _Weights, hidden: Tensor) -> StackLSTMState:
        """The state after the steps from the initial state to the outputs h_1..h_n, which drive the stacks again."""
        state = self.initial_state(len(hidden))
        if hidden.size(1) == 0:
            return state
        extended = [x.extend(hidden, y) for x, y in zip(self._stacks(), state.stacks, strict=True)]
        outputs = [*(readings for readings, _ in extended), hidden]
        first = [*state.readings, state.hidden]
        before = [torch.cat([x.unsqueeze(1), y[:, :-1]], dim=1) for x, y in zip(first, outputs, strict=True)]
        gates = input_gates + torch.cat(before, dim=2) @ weights.recurrent
        input_gate, forget_gate, candidate, _ = gates.chunk(4, dim=2)
        written, kept = input_gate.sigmoid() * self._update(candidate), forget_gate.sigmoid()
        cell = state.cell
        for written_t, kept_t in zip(written.unbind(1), kept.unbind(1), strict=True):
            cell = torch.addcmul(written_t, kept_t, cell)
        *readings, last = (x[:, -1] for x in outputs)
        return StackLSTMState(last, cell, tuple(readings), tuple(stack for _, stack in extended))

    def _kept(self, gates: Tensor) -> Tensor | None:
        """What the candidates tanh(g_t) of a whole sequence are multiplied by, (B, n, hidden_size)."""
        if self.recurrent_dropout == 0:
            return None
        batch_size, length, _ = gates.shape
        if not self.training:
            return gates.new_full((batch_size, length, self.hidden_size), 1 - self.recurrent_dropout)
        kept = gates.new_empty(length, batch_size, self.hidden_size)
        for kept_t in kept:  # one by one, so that the random numbers are those of single steps
            kept_t.bernoulli_(1 - self.recurrent_dropout)
        return kept.transpose(0, 1)

    def _update(self, candidate: Tensor) -> Tensor:
        """tanh(g_t), with recurrent dropout."""
        update = candidate.tanh()
        if self.recurrent_dropout == 0:
            return update
        kept = 1 - self.recurrent_dropout
        return update * (torch.empty_like(update).bernoulli_(kept) if self.training else kept)

    def _weights(self) -> _Weights:
        projections = [projection for stack in self._stacks() for projection in stack.projections]
        driving = None
        if projections:
            biases: list[Tensor] = [
                x.weight.new_zeros(x.out_features) if x.bias is None else x.bias for x in projections
            ]
            driving = torch.cat(biases), torch.cat([projection.weight for projection in projections]).t()
        recurrent = self.gates.weight[:, self.input_size :].t()
        return _Weights(recurrent, driving, [projection.out_features for projection in projections])

    def _advance(self, input_gates: Tensor, weights: _Weights, state: StackLSTMState) -> StackLSTMState:
        size = self.hidden_size
        remembered = torch.cat([*state.readings, state.hidden], dim=1) if state.readings else state.hidden
        gates = torch.addmm(input_gates, remembered, weights.recurrent)
        input_and_forget, candidate, output = gates.split([2 * size, size, size], dim=1)
        input_gate, forget_gate = input_and_forget.sigmoid().chunk(2, dim=1)
        cell = torch.addcmul(forget_gate * state.cell, input_gate, self._update(candidate))
        hidden = output.sigmoid() * cell.tanh()
        if weights.driving is None:
            return StackLSTMState(hidden, cell, (), ())
        bias, driving = weights.driving
        pieces = torch.addmm(bias, hidden, driving).split(weights.sizes, dim=1)
        return StackLSTMState(hidden, cell, *self._drive(pieces, hidden, state.stacks))

    def _drive(
        self, projected: Sequence[Tensor], hidden: Tensor, states: Sequence[Any]
    ) -> tuple[tuple[Tensor, ...], tuple[Any, ...]]:
        """Let each stack take a step; ``projected`` has the projections of h_t for all stacks."""
        pieces = iter(projected)
        results = []
        for stack, state in zip(self._stacks(), states, strict=True):
            actions, values = next(pieces), next(pieces) if len(stack.projections) > 1 else hidden
            reading, state = stack.projected_step(actions, values, state)
            results.append((reading.to(hidden.dtype), state))
        readings, stacks = zip(*results, strict=True)
        return readings, stacks


class _Weights(NamedTuple):
    """The weights in the form in which every step needs them.

    Attributes:
        recurrent: of [r_{t-1}; h_{t-1}] in the gates, (d_r + hidden_size, 4 hidden_size).
        driving: the biases, (sum of sizes,), and the weights, (hidden_size, sum of sizes), of all projections of h_t
            that drive the stacks; None without stacks.
        sizes: the size of each projection.
    """

    recurrent: Tensor
    driving: tuple[Tensor, Tensor] | None
    sizes: list[int]
