"""Recurrent networks with differentiable stacks: the controller drives its stacks and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear, pad

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.nondeterministic import AutomatonStackAttention
from fairseq_stack.modules.stack_attention import StackAttention
from fairseq_stack.ops import loop_is_compiled, stack_lstm
from fairseq_stack.ops._arguments import check_sizes
from fairseq_stack.ops._states import Rows

NUM_GATES = {"lstm": 4, "rnn": 1}
"""The cells of controllers: for each unit, how many numbers they compute from their inputs."""

_LARGE = 2**20  # weights that leave the caches between two steps: PyTorch's products for the whole batch are faster


@dataclass(frozen=True, eq=False)
class StackLSTMState(Rows):
    """A :class:`StackLSTM` after t steps, for a batch of B sequences; immutable.

    Attributes:
        hidden: h_t of all layers, the lowest first, (B, num_layers hidden_size).
        cell: c_t of all layers, likewise; zeros in a simple recurrent network.
        readings: the reading r_t of each stack, (B, reading_size).
        stacks: the state of each stack.
    """

    hidden: Tensor
    cell: Tensor
    readings: tuple[Tensor, ...]
    stacks: tuple[Any, ...]


class StepWeights(NamedTuple):
    """The weights of the first layer and of the stacks, in the form in which every step needs them.

    Attributes:
        recurrent: of [r_{t-1}; h_{t-1}] in the gates, (d_r + hidden_size, num_gates hidden_size).
        driving: the biases, (sum of sizes,), and the weights, (hidden_size, sum of sizes), of all projections of h_t
            that drive the stacks; None without stacks.
        sizes: the size of each projection.
    """

    recurrent: Tensor
    driving: tuple[Tensor, Tensor] | None
    sizes: list[int]


class StackLSTM(nn.Module):
    """An LSTM, or a simple recurrent network, that controls any number of stacks side by side (DuSell & Chiang 2020).

    With the input x_t and the readings r_{t-1} of all stacks, concatenated, the first layer computes

        i_t, f_t, g_t, o_t = W [x_t; r_{t-1}; h_{t-1}] + b    (gates, in this order)
        c_t = sigmoid(f_t) * c_{t-1} + sigmoid(i_t) * tanh(g_t)
        h_t = sigmoid(o_t) * tanh(c_t)

    or, in a simple recurrent network, h_t = tanh(W [x_t; r_{t-1}; h_{t-1}] + b). Each further layer has its own W and
    b, and reads h_t of the layer below in place of [x_t; r_{t-1}]. Each stack takes one step, driven by h_t of the last
    layer, to r_t. The output y_t is h_t, or [h_t; r_t]. h_0 and c_0 are 0; r_0 is the reading of the initial stack.

    Args:
        input_size: the size d of x_t.
        hidden_size: the size of h_t and c_t.
        stacks: stacks for inputs of size ``hidden_size``, built with ``output=False`` (and with ``bias=True`` in the
            papers); none make a plain LSTM.
        recurrent_dropout: the probability p of dropping a component of tanh(g_t), for each step anew. As in the code of
            Semeniuta et al. (2016), what is kept is not scaled in training; in evaluation all components are multiplied
            by 1 - p.
        num_layers: how many layers there are.
        controller: the cell, ``"lstm"`` or ``"rnn"``.
        dropout: the probability of dropout of h_t where a further layer reads it.
        learned_initial_state: whether h_0 of each layer is tanh(p), with a vector p of parameters.
        reading_in_output: whether y_t, whose size is ``output_size``, is [h_t; r_t]: "+R" in DuSell & Cotterell (2025).

    Raises:
        ValueError: a stack is of another kind or for inputs of another size, or has an output of its own; or another
            argument has no meaning.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        stacks: Sequence[StackAttention] = (),
        recurrent_dropout: float = 0.0,
        *,
        num_layers: int = 1,
        controller: str = "lstm",
        dropout: float = 0.0,
        learned_initial_state: bool = False,
        reading_in_output: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(input_size=input_size, hidden_size=hidden_size, num_layers=num_layers)
        if controller not in NUM_GATES:
            raise ValueError(f"controller: expected one of {tuple(NUM_GATES)}, got {controller!r}")
        for stack in stacks:
            if not isinstance(stack, StackAttention):
                raise ValueError(f"stacks: expected sublayers of StackAttention, got {type(stack).__name__}")
            if stack.model_size != hidden_size:
                raise ValueError(f"stacks: expected model_size {hidden_size} like hidden_size, got {stack.model_size}")
            if not isinstance(stack.output, nn.Identity):
                raise ValueError("stacks: expected stacks built with output=False, since the gates read the readings")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.recurrent_dropout = recurrent_dropout
        self.num_layers = num_layers
        self.controller = controller
        self.reading_in_output = reading_in_output
        self.stacks = nn.ModuleList(stacks)
        num_gates, num_readings = NUM_GATES[controller] * hidden_size, sum(stack.reading_size for stack in stacks)
        self.output_size = hidden_size + (num_readings if reading_in_output else 0)
        self.gates = nn.Linear(input_size + num_readings + hidden_size, num_gates)
        self.upper_gates = nn.ModuleList(nn.Linear(2 * hidden_size, num_gates) for _ in range(num_layers - 1))
        self.dropout = Dropout(dropout)
        self.initial = nn.Parameter(torch.empty(num_layers * hidden_size)) if learned_initial_state else None
        for name, parameter in self.named_parameters():
            if not name.startswith("stacks."):
                nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)

    def forward(
        self, inputs: Tensor, state: StackLSTMState | None = None, *, return_state: bool = True
    ) -> tuple[Tensor, StackLSTMState | None]:
        """Map x_1..x_n to y_1..y_n.

        From the initial state, all steps are one compiled operation, and the state after them, if it is wanted, takes a
        second pass over the stacks; in training with recurrent dropout there is none. The operation needs an LSTM of
        one layer with less than 2^20 recurrent weights and h_0 = 0, the CPU, the compiled kernels, float32 or float64,
        and stacks that it knows. Otherwise, and where autocast or ``torch.func`` changes the computation, the steps are
        taken one by one.

        Args:
            inputs: (B, n, d); or (B, n), integers from 0 to d - 1 that stand for one-hot vectors, and -1 for the vector
                of zeros.
            state: where to start (default: the initial state).
            return_state: whether the state after the last step is wanted.

        Returns:
            The outputs y_1..y_n, (B, n, output_size), and the state after the last step, or None if it is not wanted.

        Raises:
            TypeError: the state is something else, such as a mask or the pair that PyTorch's LSTMs take.
            ValueError: the inputs have another shape, or the state another batch size.
        """
        if state is not None and not isinstance(state, StackLSTMState):
            raise TypeError(f"state: expected a StackLSTMState, as initial_state makes it, got {type(state).__name__}")
        self._check(inputs, "B" if state is None else len(state.hidden), "n")
        gates, weights = self._input_gates(inputs), self._weights()
        if state is None and not (return_state and self.training and self.recurrent_dropout > 0):
            hidden = self._all_steps(gates, weights)
            if hidden is not None:
                readings = [stack(hidden) for stack in self.stacks] if self.reading_in_output else []
                outputs = torch.cat([hidden, *readings], 2) if readings else hidden
                return outputs, self._state_after(gates, weights, hidden) if return_state else None
        if state is None:
            state = self.initial_state(inputs.size(0))
        steps = []
        for gates_t in gates.unbind(1):
            state = self._advance(gates_t, weights, state)
            steps.append(self.output(state))
        if steps:
            outputs = torch.stack(steps, dim=1)
        else:
            outputs = pad(gates[..., : self.hidden_size], (0, self.output_size - self.hidden_size))
        return outputs, state if return_state else None

    def step(self, inputs: Tensor, state: StackLSTMState) -> tuple[Tensor, StackLSTMState]:
        """One step of :meth:`forward`: x_t, (B, d) or (B,), and the state before t to y_t and the state after t.

        Raises:
            ValueError: the input has another shape.
        """
        self._check(inputs, len(state.hidden))
        state = self._advance(self._input_gates(inputs), self._weights(), state)
        return self.output(state), state

    def initial_state(self, batch_size: int) -> StackLSTMState:
        """The state before the first step."""
        hidden, stacks = self._initial_hidden(batch_size), self._stacks()
        return StackLSTMState(
            hidden,
            torch.zeros_like(hidden),
            tuple(stack.initial_reading(batch_size) for stack in stacks),
            tuple(stack.initial_state(batch_size) for stack in stacks),
        )

    def output(self, state: StackLSTMState) -> Tensor:
        """y_t, (B, output_size), in the state after t steps."""
        return self._output(state.hidden, state.readings)

    def initial_output(self, batch_size: int) -> Tensor:
        """y_0, (B, output_size): what :meth:`output` is in the initial state."""
        readings = [x.initial_reading(batch_size) for x in self._stacks()] if self.reading_in_output else []
        return self._output(self._initial_hidden(batch_size), readings)

    def _output(self, hidden: Tensor, readings: Sequence[Tensor]) -> Tensor:
        last = hidden if self.num_layers == 1 else hidden[:, -self.hidden_size :]
        return torch.cat([last, *readings], 1) if self.reading_in_output else last

    def _initial_hidden(self, batch_size: int) -> Tensor:
        """h_0 of all layers, (B, num_layers hidden_size)."""
        if self.initial is None:
            return self.gates.weight.new_zeros(batch_size, self.num_layers * self.hidden_size)
        return self.initial.tanh().expand(batch_size, -1)

    def _stacks(self) -> list[StackAttention]:
        return [cast(StackAttention, stack) for stack in self.stacks]

    def _check(self, inputs: Tensor, *shape: int | str) -> None:
        check_shape("inputs", inputs, *shape, *([self.input_size] if inputs.is_floating_point() else []))

    def _input_gates(self, inputs: Tensor) -> Tensor:
        """What x_t and the bias contribute to the gates, (..., number of gates times hidden_size)."""
        weight = self.gates.weight[:, : self.input_size]
        if inputs.is_floating_point():
            return linear(inputs, weight, self.gates.bias)
        return embedding(inputs + 1, pad(weight, (1, 0)).t() + self.gates.bias)  # -1 becomes row 0, of zeros

    def _all_steps(self, gates: Tensor, weights: StepWeights) -> Tensor | None:
        """h_1..h_n, in one operation, or None if it cannot compute them."""
        if self.controller != "lstm" or self.num_layers > 1 or self.initial is not None:
            return None
        stacks = self._stacks()
        controlled = [x for x in (stack.controlled() for stack in stacks) if x is not None]
        if len(controlled) < len(stacks) or weights.recurrent.numel() >= _LARGE:
            return None
        nothing, automata = gates.new_empty(0), [x for x in stacks if isinstance(x, AutomatonStackAttention)]
        bias, driving = weights.driving or (nothing, gates.new_empty(self.hidden_size, 0))
        reading = torch.cat([nothing, *(stack.initial_reading(1)[0] for stack in stacks)])
        bottoms = torch.cat([nothing, *(stack.bottom() for stack in automata)])
        if not loop_is_compiled(gates, weights.recurrent, driving, bias, reading, bottoms):
            return None
        kept = self._kept(gates)
        return stack_lstm(gates, weights.recurrent.t(), controlled, driving.t(), bias, reading, bottoms, kept=kept)

    def _state_after(self, input_gates: Tensor, weights: StepWeights, hidden: Tensor) -> StackLSTMState:
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

    def _weights(self) -> StepWeights:
        projections = [projection for stack in self._stacks() for projection in stack.projections]
        driving = None
        if projections:
            biases: list[Tensor] = [
                x.weight.new_zeros(x.out_features) if x.bias is None else x.bias for x in projections
            ]
            driving = torch.cat(biases), torch.cat([projection.weight for projection in projections]).t()
        recurrent = self.gates.weight[:, self.input_size :].t()
        return StepWeights(recurrent, driving, [projection.out_features for projection in projections])

    def _advance(self, input_gates: Tensor, weights: StepWeights, state: StackLSTMState) -> StackLSTMState:
        hidden, cell, size = state.hidden, state.cell, self.hidden_size
        if self.num_layers > 1:
            hidden, cell = hidden[:, :size], cell[:, :size]
        remembered = torch.cat([*state.readings, hidden], dim=1) if state.readings else hidden
        hidden, cell = self._cell(torch.addmm(input_gates, remembered, weights.recurrent), cell)
        if self.num_layers > 1:
            hidden, cell = self._upper_layers(hidden, cell, state)
        if weights.driving is None:
            return StackLSTMState(hidden, cell, (), ())
        bias, driving = weights.driving
        last = hidden if self.num_layers == 1 else hidden[:, -size:]
        pieces = torch.addmm(bias, last, driving).split(weights.sizes, dim=1)
        return StackLSTMState(hidden, cell, *self._drive(pieces, last, state.stacks))

    def _upper_layers(self, hidden: Tensor, cell: Tensor, state: StackLSTMState) -> tuple[Tensor, Tensor]:
        """h_t and c_t of all layers, for these of the first layer and the state before."""
        hiddens, cells = [hidden], [cell]
        _, *before = zip(state.hidden.split(self.hidden_size, 1), state.cell.split(self.hidden_size, 1), strict=True)
        for gates, (hidden, cell) in zip(self.upper_gates, before, strict=True):
            hidden, cell = self._cell(gates(torch.cat([self.dropout(hiddens[-1]), hidden], 1)), cell)
            hiddens.append(hidden)
            cells.append(cell)
        return torch.cat(hiddens, 1), torch.cat(cells, 1)

    def _cell(self, gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
        """h_t and c_t of a layer, for its gates, (B, num_gates), and c_{t-1}."""
        if self.controller == "rnn":
            return gates.tanh(), cell
        size = self.hidden_size
        input_and_forget, candidate, output = gates.split([2 * size, size, size], dim=1)
        input_gate, forget_gate = input_and_forget.sigmoid().chunk(2, dim=1)
        cell = torch.addcmul(forget_gate * cell, input_gate, self._update(candidate))
        return output.sigmoid() * cell.tanh(), cell

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
