"""Neural stacks, and random arguments of ``neural_stack``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import ControllerSetup, neural_stack
from fairseq_stack.ops.controllers.setup import GATES

SIZE, HIDDEN, OUTPUTS = 3, 5, 4
SETUPS = {
    "linear": ControllerSetup("linear", "stack", 2),
    "rnn": ControllerSetup("rnn", "queue", 4),
    "lstm": ControllerSetup("lstm", "stack", 2, is_buffered=True),
    "gru": ControllerSetup("gru", "queue", 1, is_buffered=True),
    "pushed-input": ControllerSetup("linear", "stack", SIZE, pushes_input=True),
    "pushed-from-buffer": ControllerSetup("gru", "queue", SIZE, pushes_input=True, is_buffered=True),
    "buffer": ControllerSetup("linear", "queue", 2, is_buffered=True),
    "none": ControllerSetup("lstm", "none", 2),
}


def names(setup: ControllerSetup) -> tuple[str, ...]:
    """Of the arguments."""
    cell = ("weight_ih", "weight_hh", "bias_ih", "bias_hh") if GATES[setup.controller] else ()
    return "x", "weight", "bias", *cell


def random_arguments(
    setup: ControllerSetup,
    batch_size: int = 3,
    length: int = 6,
    hidden_size: int = HIDDEN,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """What ``names`` says, with gradients."""
    gates, features = GATES[setup.controller] * hidden_size, SIZE + setup.vector_size
    rows = setup.num_sigmoids + OUTPUTS
    shapes: list[tuple[int, ...]] = [(batch_size, length, SIZE), (rows, hidden_size if gates else features), (rows,)]
    if gates:
        shapes += [(gates, features), (gates, hidden_size), (gates,), (gates,)]
    return [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def outputs_of(
    setup: ControllerSetup, arguments: Sequence[Tensor], steps: int | None = None, backend: str = "native"
) -> tuple[Tensor, Tensor]:
    """``neural_stack`` of arguments in the order of ``names``."""
    x, weight, bias, *cell = arguments
    return neural_stack(x, weight, bias, cell, setup, x.size(1) if steps is None else steps, backend=backend)


def weighted_sum(outputs: Sequence[Tensor]) -> Tensor:
    """A loss that depends on each output in another way."""
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype) for x in outputs]
    return sum(((x * y).sum() for x, y in zip(outputs, weights, strict=True)), outputs[0].new_zeros(()))


def gradients_of(outputs: Sequence[Tensor], arguments: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Of a loss, with respect to each argument."""
    return torch.autograd.grad(weighted_sum(outputs), arguments, materialize_grads=True)
