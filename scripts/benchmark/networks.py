"""Neural stacks in training, at once and step by step."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.modules import BufferedNeuralStack, NeuralStack

from .agreement import normwise_error, refuse_if_wrong
from .timing import Timer, Times


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


NETWORKS = (
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


def check_network(case: Network) -> float:
    """Compare the outputs in float32, of all steps at once, with the outputs in float64 of single steps.

    Returns:
        The largest error, relative to the largest element.

    Raises:
        Disagreement: if it is too large.
    """
    model, strings = case.build(), case.strings()
    with torch.no_grad():
        expected = _outputs_by_steps(copy.deepcopy(model).double(), strings.double())
        error = normwise_error(_outputs(model, strings), expected)
    what = f"the {'buffered ' * case.is_buffered}{case.controller} controller with memory {case.memory!r}"
    refuse_if_wrong(f"{what} is wrong: outputs differ", error, torch.float32)
    return error


def training_of(case: Network, timer: Timer) -> Callable[[], Times]:
    """A run of the forward and the backward pass, which returns their seconds; of all steps at once where possible."""
    return _passes(case, _outputs, timer)


def training_by_steps(case: Network, timer: Timer) -> Callable[[], Times]:
    """The same, step by step."""
    return _passes(case, _outputs_by_steps, timer)


def _outputs(model: NeuralStack | BufferedNeuralStack, strings: Tensor) -> Tensor:
    return model(strings).output if isinstance(model, NeuralStack) else model(strings)[1].output


def _outputs_by_steps(model: NeuralStack | BufferedNeuralStack, strings: Tensor) -> Tensor:
    return model.each_step(strings, strings.size(1)).output


def _passes(
    case: Network, outputs: Callable[[NeuralStack | BufferedNeuralStack, Tensor], Tensor], timer: Timer
) -> Callable[[], Times]:
    model, strings = case.build(), case.strings()

    def run() -> Times:
        lap = timer.start()
        loss = outputs(model, strings).square().sum()
        forward = lap()
        loss.backward()
        return forward, lap()

    return run
