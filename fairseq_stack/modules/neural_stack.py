"""Neural stacks and buffered networks of Hao et al. (2018): a controller that pushes, pops and reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from fairseq_stack.modules._shapes import check_shape
from fairseq_stack.ops import (
    ControllerSetup,
    InputBufferState,
    QueueState,
    StratificationStackState,
    loop_is_compiled,
    neural_stack,
    output_buffer,
)
from fairseq_stack.ops._states import Rows

CELLS: dict[str, type[nn.RNNCell] | type[nn.LSTMCell] | type[nn.GRUCell] | None] = {
    "linear": None,
    "rnn": nn.RNNCell,
    "lstm": nn.LSTMCell,
    "gru": nn.GRUCell,
}
MEMORIES: dict[str, type[StratificationStackState] | type[QueueState] | None] = {
    "stack": StratificationStackState,
    "queue": QueueState,
    "none": None,
}
PUSHED = ("vector", "input")
_LARGE = 2**16  # weights, which each sequence reads in each step: PyTorch's products for the whole batch are faster


class Step(NamedTuple):
    """What a network computes in a step, or in all T steps; then each tensor is (B, T, ...).

    Attributes:
        pop: (B,), the strength u_t.
        push: (B,), the strength d_t.
        values: (B, m), the pushed vector v_t.
        reading: (B, m), r_t.
        input: (B, k), x_t.
        output: (B, output size), y_t.
        input_pop: (B,), the strength i_t; None without buffers, like ``output_push``.
        output_push: (B,), the strength o_t.
    """

    pop: Tensor
    push: Tensor
    values: Tensor
    reading: Tensor
    input: Tensor
    output: Tensor
    input_pop: Tensor | None
    output_push: Tensor | None


@dataclass(frozen=True, eq=False)
class NeuralStackState(Rows):
    """A network between two steps.

    Attributes:
        reading: r_{t-1}, (B, m).
        hidden: the states of the cell, each (B, h); empty for a linear controller.
        memory: the stack or the queue; None without.
    """

    reading: Tensor
    hidden: tuple[Tensor, ...]
    memory: StratificationStackState | QueueState | None


class Controller(nn.Module):
    """A controller and the stack or queue that it drives.

    All steps of a sequence are one compiled operation. It needs the CPU, the compiled kernels, float32 or float64, and
    less than 2^16 weights, and has no second derivative. Otherwise, and where autocast or ``torch.func`` changes the
    computation, the steps are taken one by one. ``each_step`` always takes them one by one.

    Args:
        input_size: k, the size of x_t.
        vector_size: m, the size of v_t; the input's size, if the input is pushed.
        controller: ``"linear"``, ``"rnn"``, ``"lstm"`` or ``"gru"``.
        hidden_size: h, of a recurrent controller.
        memory: ``"stack"``, ``"queue"``, or ``"none"``: then r_t = 0, and all parameters stay.
        pushed: ``"vector"``, or ``"input"``: v_t = x_t, and z_t has no rows for v_t.
        output_size: of y_t (default: the input's size).

    Raises:
        ValueError: if the controller, the memory or what is pushed is unknown, or a pushed input has another size.
    """

    num_strengths: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        vector_size: int,
        *,
        controller: str = "linear",
        hidden_size: int = 10,
        memory: str = "stack",
        pushed: str = "vector",
        output_size: int | None = None,
    ) -> None:
        super().__init__()
        for name, value, choices in (
            ("controller", controller, CELLS), ("memory", memory, MEMORIES), ("pushed", pushed, PUSHED),
        ):  # fmt: skip
            if value not in choices:
                raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
        if pushed == "input" and vector_size != input_size:
            raise ValueError(f"vector_size: expected {input_size} like the input that is pushed, got {vector_size}")
        self.input_size, self.vector_size = input_size, vector_size
        self.output_size = input_size if output_size is None else output_size
        self.controller, self.memory, self.pushed = controller, memory, pushed
        cell, size = CELLS[controller], input_size + vector_size
        self.cell = None if cell is None else cell(size, hidden_size)
        self._sizes = [*[1] * self.num_strengths, vector_size if pushed == "vector" else 0, self.output_size]
        self.out = nn.Linear(size if cell is None else hidden_size, sum(self._sizes))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialise as the authors' code: matrices from N(0, 1 / rows), and biases that discourage popping."""
        for parameter in self.parameters():
            if parameter.dim() == 2:
                parameter.normal_(0, parameter.size(0) ** -0.5)
            else:
                parameter.zero_()
        self.out.bias[0] = -1
        self.out.bias[2 : self.num_strengths] = 1  # i and o: moving on in the input, and writing

    def initial_state(self, batch_size: int) -> NeuralStackState:
        """The state before the first step."""
        weight, memory = self.out.weight, MEMORIES[self.memory]
        hidden: tuple[Tensor, ...] = ()
        if self.cell is not None:
            hidden = (weight.new_zeros(batch_size, self.cell.hidden_size),) * (2 if self.controller == "lstm" else 1)
        reading = weight.new_zeros(batch_size, self.vector_size)
        if memory is None:
            return NeuralStackState(reading, hidden, None)
        empty = memory.initial(batch_size=batch_size, size=self.vector_size, dtype=weight.dtype, device=weight.device)
        return NeuralStackState(reading, hidden, empty)

    def step(self, x: Tensor, state: NeuralStackState) -> tuple[Step, NeuralStackState]:
        """One step.

        Args:
            x: (B, k), x_t.
            state: after step t - 1.

        Raises:
            ValueError: if the shape of ``x`` is wrong.
        """
        check_shape("x", x, len(state.reading), self.input_size)
        features, hidden = self._control(torch.cat([x, state.reading], 1), state.hidden)
        *strengths, z, output = self.out(features).split(self._sizes, 1)
        pop, push, *buffers = (torch.sigmoid(u).squeeze(1) for u in strengths)
        values = torch.sigmoid(z) if self.pushed == "vector" else x.to(z.dtype)
        reading, memory = state.reading, state.memory
        if memory is not None:
            reading, memory = memory.step(pop, push, values)
        input_pop, output_push = buffers or (None, None)
        computed = Step(pop, push, values, reading, x, output, input_pop, output_push)
        return computed, NeuralStackState(reading, hidden, memory)

    def _control(self, x: Tensor, hidden: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """What the linear layer gets, and the new states of the cell."""
        if self.cell is None:
            return x, ()
        after = self.cell(x, hidden if self.controller == "lstm" else hidden[0])
        hidden = after if self.controller == "lstm" else (after,)
        return hidden[0], hidden

    def _all_steps(self, x: Tensor, steps: int) -> Step | None:
        """All steps in one operation, or None if it cannot compute them."""
        cell: list[Tensor] = []
        if self.cell is not None:
            cell = [self.cell.weight_ih, self.cell.weight_hh, self.cell.bias_ih, self.cell.bias_hh]
        weights = [self.out.weight, self.out.bias, *cell]
        fits = type(self).step is Controller.step and sum(weight.numel() for weight in weights) < _LARGE
        if not fits or not loop_is_compiled(x, *weights):
            return None
        setup = ControllerSetup(
            self.controller, self.memory, self.vector_size, self.pushed == "input", self.num_strengths == 4
        )
        computed, remembered = neural_stack(x, self.out.weight, self.out.bias, cell, setup, steps)
        *strengths, values, output = computed.split(self._sizes, 2)
        pop, push, *buffers = (u.squeeze(2) for u in strengths)
        inputs, reading = remembered[:, :-1, : self.input_size], remembered[:, 1:, self.input_size :]
        values = values if self.pushed == "vector" else inputs
        input_pop, output_push = buffers or (None, None)
        return Step(pop, push, values, reading[:, :, : self.vector_size], inputs, output, input_pop, output_push)

    def _check(self, x: Tensor, steps: int | None) -> int:
        if x.dim() != 3 or x.size(2) != self.input_size or x.size(1) == 0:
            raise ValueError(f"x: expected shape (B, n, {self.input_size}) with n > 0, got {tuple(x.shape)}")
        if steps is not None and steps < x.size(1):
            raise ValueError(f"steps: expected at least {x.size(1)}, one for each input, got {steps}")
        return x.size(1) if steps is None else steps


class NeuralStack(Controller):
    """A controller with a stack or a queue (Section 2.2 of Hao et al., 2018).

    In each step, the controller computes z_t = A [x_t; r_{t-1}] + b, or z_t = A h_t + b where a recurrent cell
    computes h_t from [x_t; r_{t-1}] and h_{t-1}. Its rows are the strengths u_t and d_t, the vector v_t, and the output
    y_t, all through a sigmoid except y_t. The memory pops u_t, pushes v_t with the strength d_t, and is read: r_t.
    The arguments are described in :class:`Controller`.
    """

    num_strengths = 2

    def forward(self, x: Tensor, *, steps: int | None = None) -> Step:
        """All steps.

        Args:
            x: (B, n, k).
            steps: T (default: n). After the input the network gets zero vectors.

        Returns:
            What is computed in each of T steps; ``output`` (B, T, output size) are the logits.

        Raises:
            ValueError: if the shape of ``x`` is wrong, or there are fewer steps than inputs.
        """
        steps = self._check(x, steps)
        return self._all_steps(x, steps) or self.each_step(x, steps)

    def each_step(self, x: Tensor, steps: int) -> Step:
        """T steps, one by one; arguments as for :meth:`forward`."""
        state, computed = self.initial_state(len(x)), []
        for x_t in pad(x, (0, 0, 0, steps - x.size(1))).unbind(1):
            step, state = self.step(x_t, state)
            computed.append(step)
        return _stack(computed)


class BufferedNeuralStack(Controller):
    """A neural stack that reads its input from a queue, and writes its output to one (Section 2.3).

    The controller has two more strengths, after u_t and d_t: i_t, which is popped from the input buffer before the next
    step, and o_t, with which y_t is written to the output buffer. The arguments are described in :class:`Controller`.
    """

    num_strengths = 4

    def forward(self, x: Tensor, *, steps: int | None = None, reading: str = "dequeue-first") -> tuple[Tensor, Step]:
        """All steps.

        Args:
            x: (B, n, k).
            steps: T (default: n).
            reading: of the output buffer, ``"dequeue-first"`` or ``"read-first"``: see ``ops.output_buffer``.

        Returns:
            The logits (B, n, output size), and what is computed in each of T steps.

        Raises:
            ValueError: if the shape of ``x`` is wrong, there are fewer steps than inputs, or there is no such reading.
        """
        steps = self._check(x, steps)
        every = self._all_steps(x, steps) or self.each_step(x, steps)
        assert every.output_push is not None
        return output_buffer(every.output_push, every.output, x.size(1), reading=reading), every

    def each_step(self, x: Tensor, steps: int) -> Step:
        """T steps, one by one; arguments as for :meth:`forward`."""
        state, buffer, computed = self.initial_state(len(x)), InputBufferState.initial(x), []
        pop = x.new_zeros(len(x))
        for _ in range(steps):
            x_t, buffer = buffer.step(pop)
            step, state = self.step(x_t, state)
            assert step.input_pop is not None
            pop = step.input_pop
            computed.append(step)
        return _stack(computed)


def _stack(steps: list[Step]) -> Step:
    together: Any = [None if same[0] is None else torch.stack(same, 1) for same in zip(*steps, strict=True)]
    return Step(*together)
