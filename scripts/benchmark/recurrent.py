"""Stack LSTMs in training, beside an LSTM of the same size that is a loop over ``nn.LSTMCell``."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from fairseq_stack.kinds import parse_stacks
from fairseq_stack.modules import StackLSTM

from .agreement import normwise_error, refuse_if_wrong
from .timing import Timer, Times

SYMBOLS = 3
DECODED = 80
"""Steps of decoding."""


class Recurrent(NamedTuple):
    """An LSTM with stacks and its input.

    Attributes:
        stacks: as ``--stack`` lists them.
        hidden_size: of the LSTM.
        batch_size: sequences of a batch.
        length: their length.
    """

    stacks: str
    hidden_size: int
    batch_size: int = 10
    length: int = 60

    def build(self) -> StackLSTM:
        """The model, with random weights."""
        torch.manual_seed(0)
        stacks = [
            layer.kind.build(self.hidden_size, *layer.sizes, output=False, bias=True)
            for layer in parse_stacks(self.stacks)
            if layer.kind.build is not None
        ]
        return StackLSTM(SYMBOLS, self.hidden_size, stacks)

    def symbols(self) -> Tensor:
        """The input, (B, n)."""
        generator = torch.Generator().manual_seed(1)
        return torch.randint(SYMBOLS, (self.batch_size, self.length), generator=generator)


RECURRENT = (
    # Table 5 of DuSell & Chiang (2024), and the same with other stacks
    Recurrent("none", 100),
    Recurrent("sup-10", 93),
    Recurrent("strat-10", 93),
    Recurrent("ns-2-3", 64),
    Recurrent("nd-2-3-5", 64),
    # 2020
    Recurrent("none", 20),
    Recurrent("sup-20", 20),
    Recurrent("ns-2-2", 20),
    # Penn Treebank, 2022 and 2023
    Recurrent("none", 256),
    Recurrent("sup-22", 256),
    Recurrent("nd-1-1-256", 256),
    Recurrent("nd-3-3-5", 256),
    Recurrent("ns-4-5", 256),
)


def check_recurrent(case: Recurrent) -> float:
    """Compare the outputs in float32, of all steps at once, with the outputs in float64 of single steps.

    Returns:
        The largest error, relative to the largest element.

    Raises:
        Disagreement: if it is too large.
    """
    model, symbols = case.build(), case.symbols()
    with torch.no_grad():
        error = normwise_error(model(symbols, return_state=False)[0], copy.deepcopy(model).double()(symbols)[0])
    refuse_if_wrong(f"the LSTM with {case.stacks} is wrong: outputs differ", error, torch.float32)
    return error


def training_of(case: Recurrent, timer: Timer) -> Callable[[], Times]:
    """A run of the forward and the backward pass, which returns their seconds; of all steps at once where possible."""
    model, symbols = case.build(), case.symbols()
    return _passes(lambda: model(symbols, return_state=False)[0], timer)


def training_by_steps(case: Recurrent, timer: Timer) -> Callable[[], Times]:
    """The same, step by step."""
    model, symbols = case.build(), case.symbols()
    return _passes(lambda: model(symbols)[0], timer)


def training_of_cells(case: Recurrent, timer: Timer) -> Callable[[], Times]:
    """The same for a loop over ``nn.LSTMCell``, without stacks."""
    cell = nn.LSTMCell(SYMBOLS, case.hidden_size)
    inputs = one_hot(case.symbols(), SYMBOLS).float()

    def outputs() -> Tensor:
        hidden = state = inputs.new_zeros(case.batch_size, case.hidden_size)
        found = []
        for t in range(case.length):
            hidden, state = cell(inputs[:, t], (hidden, state))
            found.append(hidden)
        return torch.stack(found, 1)

    return _passes(outputs, timer)


def decoding_of(case: Recurrent, timer: Timer) -> Callable[[], Times]:
    """A run of DECODED steps with a beam, which is reordered before each; returns the seconds of the last ten."""
    model = case.build()
    generator = torch.Generator().manual_seed(2)
    orders = torch.randint(case.batch_size, (DECODED, case.batch_size), generator=generator)
    symbols = torch.randint(SYMBOLS, (DECODED, case.batch_size), generator=generator)

    def run() -> Times:
        lap = timer.start()
        with torch.no_grad():
            state = model.initial_state(case.batch_size)
            for t, (order, inputs) in enumerate(zip(orders, symbols, strict=True)):
                if t == DECODED - 10:
                    lap()
                _, state = model.step(inputs, state.reorder(order))
        return (lap(),)

    return run


def _passes(outputs: Callable[[], Tensor], timer: Timer) -> Callable[[], Times]:
    def run() -> Times:
        lap = timer.start()
        loss = outputs().square().sum()
        forward = lap()
        loss.backward()
        return forward, lap()

    return run
