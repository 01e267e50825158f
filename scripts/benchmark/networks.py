"""Neural stacks in training, at once and step by step."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.modules import BufferedNeuralStack, NeuralStack

from .agreement import normwise_error, refuse_if_wrong
from .tables import PASSES, Columns, Row, error, milliseconds
from .timing import Run, Settings, Timer, passes


class Network(NamedTuple):
    """A neural stack and its input; the sizes are those of Hao et al. (2018).

    Attributes:
        controller: as for ``NeuralStack``, like the memory.
        memory: a stack, a queue or none.
        is_buffered: whether it reads its input from a buffer, and writes its output to one.
        length: of the strings, which is the number of steps.
        input_size: k.
        vector_size: m.
        batch_size: strings of a batch.
    """

    controller: str
    memory: str = "stack"
    is_buffered: bool = False
    length: int = 24
    input_size: int = 3
    vector_size: int = 2
    batch_size: int = 10

    def build(self) -> NeuralStack | BufferedNeuralStack:
        """The network, with random weights."""
        torch.manual_seed(0)
        kind = BufferedNeuralStack if self.is_buffered else NeuralStack
        return kind(self.input_size, self.vector_size, controller=self.controller, memory=self.memory)

    def strings(self) -> Tensor:
        """The input, (B, n, k)."""
        generator = torch.Generator().manual_seed(1)
        symbols = torch.randint(self.input_size, (self.batch_size, self.length), generator=generator)
        return torch.eye(self.input_size)[symbols]


CASES = (
    # reversal
    Network("linear"),
    Network("linear", is_buffered=True),
    Network("rnn"),
    Network("gru"),
    Network("lstm"),
    Network("lstm", "queue"),
    Network("lstm", "none"),
    Network("lstm", is_buffered=True),
    # the longest strings of parentheses
    Network("linear", length=110, input_size=5),
    Network("lstm", length=110, input_size=5),
)


COLUMNS: Columns = {
    "network": lambda row: "buffered" if row["is_buffered"] else "plain",
    "controller": "controller",
    "memory": "memory",
    "B": "batch_size",
    "T": "length",
    "threads": "threads",
    **PASSES,
    "by steps ms": "steps_ms",
    "by steps / at once": "steps_times_own",
    "error": error,
}


def measure(cases: Sequence[Network], settings: Settings) -> list[Row]:
    """Check neural stacks, and then compare their training with the same step by step.

    Raises:
        Disagreement: all steps at once compute something else than single steps.
    """
    errors = [_check(case) for case in cases]
    rows = []
    for case, wrong in zip(cases, errors, strict=True):
        what = f"the neural stack with {case.controller} and {case.memory}: training"
        for threads in settings.each_number_of_threads(what):
            times = settings.least_times(runs(case, settings.timer))
            steps = sum(times["steps"])
            rows.append(
                {
                    **case._asdict(),
                    "threads": threads,
                    **milliseconds(times["at once"]),
                    "steps_ms": 1e3 * steps,
                    "steps_times_own": steps / sum(times["at once"]),
                    "error": wrong,
                }
            )
    return rows


def runs(case: Network, timer: Timer) -> dict[str, Run]:
    """Both passes, of all steps at once where possible, and step by step."""
    model, strings = case.build(), case.strings()
    weights = [*model.parameters()]
    return {
        "at once": passes(lambda: _outputs(model, strings), weights, timer),
        "steps": passes(lambda: _outputs_by_steps(model, strings), weights, timer),
    }


def _check(case: Network) -> float:
    """The error of the outputs in float32, of all steps at once, compared with float64 and single steps."""
    model, strings = case.build(), case.strings()
    with torch.no_grad():
        expected = _outputs_by_steps(copy.deepcopy(model).double(), strings.double())
        wrong = normwise_error(_outputs(model, strings), expected)
    what = f"the {'buffered ' * case.is_buffered}{case.controller} controller with memory {case.memory!r}"
    refuse_if_wrong(f"{what} is wrong: outputs differ", wrong, torch.float32)
    return wrong


def _outputs(model: NeuralStack | BufferedNeuralStack, strings: Tensor) -> Tensor:
    return model(strings).output if isinstance(model, NeuralStack) else model(strings)[1].output


def _outputs_by_steps(model: NeuralStack | BufferedNeuralStack, strings: Tensor) -> Tensor:
    return model.each_step(strings, strings.size(1)).output
