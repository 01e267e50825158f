"""A neural stack as its equations, step by step, for autograd to differentiate as often as wanted."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear, pad

from ..buffers import input_buffer
from ..queues import queue
from ..stratification import stratification_stack
from .setup import ControllerSetup


def neural_stack_reference(
    x: Tensor, weight: Tensor, bias: Tensor, cell: Sequence[Tensor], setup: ControllerSetup, steps: int
) -> tuple[Tensor, Tensor]:
    """The rows, and [x_{t+1}; r_t; h_t]; arguments and results as for ``neural_stack``."""
    padded = pad(x, (0, 0, 0, steps - x.size(1)))
    size = cell[1].size(1) if cell else 0
    reading, hidden = (x.new_zeros(x.size(0), m) for m in (setup.vector_size, size))
    state = hidden
    computed: list[Tensor] = []
    remembered = []
    for t in range(steps):
        x_t = _read_input(x, computed) if setup.is_buffered else padded[:, t]
        remembered.append(torch.cat([x_t, reading, hidden], 1))
        features = torch.cat([x_t, reading], 1)
        if setup.controller == "lstm":
            hidden, state = torch.lstm_cell(features, [hidden, state], *cell)
        elif setup.controller == "gru":
            hidden = torch.gru_cell(features, hidden, *cell)
        elif setup.controller == "rnn":
            hidden = torch.rnn_tanh_cell(features, hidden, *cell)
        z = linear(hidden if cell else features, weight, bias)
        computed.append(torch.cat([z[:, : setup.num_sigmoids].sigmoid(), z[:, setup.num_sigmoids :]], 1))
        if setup.memory != "none":
            reading = _read_memory(setup, computed, remembered, x.size(2))
    remembered.append(torch.cat([torch.zeros_like(x[:, 0]), reading, hidden], 1))
    return torch.stack(computed, 1), torch.stack(remembered, 1)


def _read_input(items: Tensor, computed: Sequence[Tensor]) -> Tensor:
    """x_t after the steps 1..t - 1."""
    pops = torch.stack([torch.zeros_like(items[:, 0, 0]), *(rows[:, 2] for rows in computed)], 1)
    return input_buffer(pops, items, backend="reference")[:, -1]


def _read_memory(setup: ControllerSetup, computed: Sequence[Tensor], inputs: Sequence[Tensor], size: int) -> Tensor:
    """r_t after the steps 1..t."""
    rows = torch.stack(list(computed), 1)
    if setup.pushes_input:
        values = torch.stack(list(inputs), 1)[:, :, :size]
    else:
        values = rows[:, :, setup.num_strengths : setup.num_sigmoids]
    read = stratification_stack if setup.memory == "stack" else queue
    return read(rows[:, :, 0], rows[:, :, 1], values, backend="reference")[:, -1]
