"""An LSTM with stacks as its equations, step by step, for autograd to differentiate as often as wanted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ..nondeterministic._tracked_columns import TrackedColumns
from ..queues.reference import pop_front, read_front
from .stacks import ControlledAutomaton, ControlledStack, ControlledStratification, ControlledSuperposition, Weights


def stack_lstm_reference(
    gates: Tensor, weights: Weights, kept: Tensor | None, stacks: Sequence[ControlledStack]
) -> Tensor:
    """The hidden states; arguments and result as for ``stack_lstm``."""
    recurrent, driving, bias, reading, bottoms = weights
    batch_size, length, size = gates.shape[0], gates.shape[1], gates.shape[2] // 4
    hidden = cell = gates.new_zeros(batch_size, size)
    reading = reading.expand(batch_size, -1)
    own_bottoms = bottoms.split([stack.bottom_size for stack in stacks])
    running = [_start(stack, bottom, batch_size) for stack, bottom in zip(stacks, own_bottoms, strict=True)]
    outputs = []
    for t in range(length):
        i, f, g, o = (gates[:, t] + linear(torch.cat([reading, hidden], 1), recurrent)).chunk(4, 1)
        update = g.tanh() if kept is None else g.tanh() * kept[:, t]
        cell = f.sigmoid() * cell + i.sigmoid() * update
        hidden = o.sigmoid() * cell.tanh()
        outputs.append(hidden)
        projected = linear(hidden, driving, bias).split([stack.num_projected for stack in stacks], 1)
        readings = [stack.step(driving_rows, hidden) for stack, driving_rows in zip(running, projected, strict=True)]
        reading = torch.cat([reading[:, :0], *readings], 1)
    return torch.stack(outputs, 1) if outputs else gates[:, :, :size]


def _start(stack: ControlledStack, bottom: Tensor, batch_size: int) -> _Superposition | _Stratification | _Automaton:
    """The stack before the first step; its ``step`` maps projections of h_t, (B, p), and h_t to the reading, (B, r)."""
    if isinstance(stack, ControlledAutomaton):
        return _Automaton(stack, bottom.expand(batch_size, -1))
    nothing = bottom.new_zeros(batch_size, 0, stack.size)
    if isinstance(stack, ControlledStratification):
        return _Stratification(stack, nothing)
    return _Superposition(stack, nothing)


class _Superposition:
    """The step of ``superposition/reference.py``."""

    def __init__(self, stack: ControlledSuperposition, elements: Tensor) -> None:
        self.stack, self.elements = stack, elements

    def step(self, projected: Tensor, hidden: Tensor) -> Tensor:
        push, noop, pop = projected[:, :3].softmax(1)[:, :, None, None].unbind(1)
        values = {"sigmoid": projected[:, 3:].sigmoid(), "identity": projected[:, 3:], "hidden": hidden}
        above = torch.cat([values[self.stack.pushes][:, None], self.elements], 1)
        at, below = pad(self.elements, (0, 0, 0, 1)), pad(self.elements[:, 1:], (0, 0, 0, 2))
        below = below[:, : at.shape[1]]
        self.elements = (push * above + noop * at + pop * below)[:, : self.stack.depth_limit]
        return self.elements[:, 0]


class _Stratification:
    """The step of ``stratification/reference.py``."""

    def __init__(self, stack: ControlledStratification, values: Tensor) -> None:
        self.stack, self.values = stack, values
        self.strengths: list[Tensor] = []

    def step(self, projected: Tensor, hidden: Tensor) -> Tensor:
        pop, push = projected[:, :2].sigmoid().unbind(1)
        value = projected[:, 2:].tanh() if self.stack.pushes == "tanh" else projected[:, 2:].sigmoid()
        self.strengths = [push, *pop_front(self.strengths, pop)]
        self.values = torch.cat([value[:, None], self.values], 1)
        return read_front(self.strengths, self.values, torch.ones_like(pop))


class _Automaton:
    """(a)-(d) of ``docs/algorithm.md``."""

    def __init__(self, stack: ControlledAutomaton, bottom: Tensor) -> None:
        self.stack, self.bottom = stack, bottom
        self.columns = None if stack.original_bottom else self._first_column(None)

    def step(self, projected: Tensor, hidden: Tensor) -> Tensor:
        stack = self.stack
        logits = projected[:, : stack.num_actions].unflatten(1, (stack.num_tops, -1))
        if stack.normalized:
            logits = logits.log_softmax(2)
        values = projected[:, stack.num_actions :]
        value = {"sigmoid": values.sigmoid(), "exponential": values.exp(), "ones": torch.ones_like(self.bottom)}
        if self.columns is None:
            start = logits[:, 0, : stack.num_tops]
            self.columns = self._first_column(start)
            reading = start.softmax(1)[:, :, None] * self.bottom[:, None]
        else:
            reading, self.columns = self.columns.advance(logits, value[stack.pushes])
        if not stack.states_in_reading:
            reading = reading.unflatten(1, (stack.num_states, stack.num_symbols)).sum(1)
        return reading.flatten(1)

    def _first_column(self, start: Tensor | None) -> TrackedColumns:
        stack = self.stack
        return TrackedColumns.initial(self.bottom, stack.num_states, stack.num_symbols, stack.window, start)
