"""The nondeterministic stack with limited memory: long sequences, beside a short one with unlimited memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack, release_buffers

from .agreement import normwise_error, refuse_if_wrong
from .memory import MEGABYTE, peak_bytes, reset_peak, return_free_memory
from .timing import Timer, Times

NUM_STATES, NUM_SYMBOLS, SIZE = 2, 3, 5


class Windowed(NamedTuple):
    """One sequence.

    Attributes:
        length: n.
        window: D, or None for unlimited memory.
    """

    length: int
    window: int | None

    def inputs(self, dtype: torch.dtype) -> list[Tensor]:
        """Random arguments of the stack that require gradients."""
        generator = torch.Generator().manual_seed(0)
        source, target = (1, self.length, NUM_STATES, NUM_SYMBOLS), (NUM_STATES, NUM_SYMBOLS)
        shapes = [(*source, *target), (*source, *target), (*source, NUM_STATES), (1, self.length, SIZE), (SIZE,)]
        return [torch.randn(shape, generator=generator, dtype=dtype).requires_grad_() for shape in shapes]


WINDOWED = (Windowed(500, None), *(Windowed(n, 35) for n in (1_000, 3_000, 10_000)), Windowed(10_000, 64))


def check_windowed(case: Windowed) -> float:
    """Compare the readings of the first 100 steps with PyTorch's in float64.

    Returns:
        The largest error, relative to the largest element.

    Raises:
        Disagreement: if it is too large.
    """
    inputs = [x.detach() for x in case._replace(length=min(case.length, 100)).inputs(torch.float32)]
    found = nondeterministic_stack(*inputs, window=case.window)
    expected = nondeterministic_stack(*(x.double() for x in inputs), backend="pytorch", window=case.window)
    error = normwise_error(found, expected)
    refuse_if_wrong(f"the nondeterministic stack is wrong: with {case}, readings differ", error, torch.float32)
    return error


def passes_of(case: Windowed, timer: Timer) -> Callable[[], Times]:
    """A run of the forward and the backward pass, which returns their seconds."""
    inputs = case.inputs(torch.float32)

    def run() -> Times:
        lap = timer.start()
        readings = nondeterministic_stack(*inputs, window=case.window)
        forward = lap()
        torch.autograd.grad(readings, inputs, torch.ones_like(readings))
        return forward, lap()

    return run


def megabytes_of(case: Windowed, timer: Timer) -> float:
    """Peak extra memory of both passes, in this process, which has given back what it had kept."""
    run = passes_of(case, timer)
    release_buffers()
    return_free_memory()
    before = reset_peak()
    run()
    return (peak_bytes() - before) / MEGABYTE
