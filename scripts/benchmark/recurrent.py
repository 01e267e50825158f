"""Stack LSTMs in training, compared with an LSTM of the same size that is a loop over ``nn.LSTMCell``."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from fairseq_stack.kinds import parse_stacks
from fairseq_stack.modules import StackLSTM
from fairseq_stack.networks import LSTMOptions

from .agreement import normwise_error, refuse_if_wrong
from .tables import PASSES, Columns, Row, error, milliseconds
from .timing import Run, Settings, Timer, Times, passes

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
        stacks = [layer.build_stack(self.hidden_size, LSTMOptions()) for layer in parse_stacks(self.stacks)]
        return StackLSTM(SYMBOLS, self.hidden_size, stacks)

    def symbols(self) -> Tensor:
        """The input, (B, n)."""
        generator = torch.Generator().manual_seed(1)
        return torch.randint(SYMBOLS, (self.batch_size, self.length), generator=generator)


CASES = (
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


COLUMNS: Columns = {
    "stack": "stacks",
    "hidden": "hidden_size",
    "B": "batch_size",
    "n": "length",
    "threads": "threads",
    **PASSES,
    "by steps ms": "steps_ms",
    "nn.LSTMCell ms": "cells_ms",
    "x nn.LSTMCell": "times_cells",
    "by steps x nn.LSTMCell": "steps_times_cells",
    "decoding steps / s": "steps_per_second",
    "error": error,
}


def measure(cases: Sequence[Recurrent], settings: Settings) -> list[Row]:
    """Check stack LSTMs, and then compare their training with a loop over ``nn.LSTMCell``.

    Raises:
        Disagreement: all steps at once compute something else than single steps.
    """
    errors = [_check(case) for case in cases]
    rows = []
    for case, wrong in zip(cases, errors, strict=True):
        for threads in settings.each_number_of_threads(f"the LSTM with {case.stacks}: training"):
            times = settings.least_times(runs(case, settings.timer))
            at_once, steps, cells = (sum(times[name]) for name in ("at once", "steps", "cells"))
            rows.append(
                {
                    **case._asdict(),
                    "threads": threads,
                    **milliseconds(times["at once"]),
                    "steps_ms": 1e3 * steps,
                    "cells_ms": 1e3 * cells,
                    "times_cells": at_once / cells,
                    "steps_times_cells": steps / cells,
                    "steps_per_second": 10 / sum(times["decoding"]),
                    "error": wrong,
                }
            )
    return rows


def _check(case: Recurrent) -> float:
    """The error of the outputs in float32, of all steps at once, compared with float64 and single steps."""
    model, symbols = case.build(), case.symbols()
    with torch.no_grad():
        wrong = normwise_error(model(symbols, return_state=False)[0], copy.deepcopy(model).double()(symbols)[0])
    refuse_if_wrong(f"the LSTM with {case.stacks} is wrong: outputs differ", wrong, torch.float32)
    return wrong


def runs(case: Recurrent, timer: Timer) -> dict[str, Run]:
    """Both passes of the LSTM, at once and step by step, of a loop over ``nn.LSTMCell``; and decoding."""
    model, symbols, cell = case.build(), case.symbols(), nn.LSTMCell(SYMBOLS, case.hidden_size)
    inputs = one_hot(symbols, SYMBOLS).float()

    def of_cells() -> Tensor:
        hidden = state = inputs.new_zeros(case.batch_size, case.hidden_size)
        outputs = []
        for x in inputs.unbind(1):
            hidden, state = cell(x, (hidden, state))
            outputs.append(hidden)
        return torch.stack(outputs, 1)

    weights = [*model.parameters()]
    return {
        "at once": passes(lambda: model(symbols, return_state=False)[0], weights, timer),
        "steps": passes(lambda: model(symbols)[0], weights, timer),
        "cells": passes(of_cells, [*cell.parameters()], timer),
        "decoding": _decoding(case, model, timer),
    }


def _decoding(case: Recurrent, model: StackLSTM, timer: Timer) -> Run:
    """A run of DECODED steps with a beam, which is reordered before each; returns the seconds of the last ten."""
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
