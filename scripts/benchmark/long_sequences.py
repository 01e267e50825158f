"""Long sequences: the stacks with limited memory or depth, beside stacks without a limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack, release_buffers, stratification_stack, superposition_stack

from .agreement import normwise_error, refuse_if_wrong
from .memory import MEGABYTE, peak_bytes, reset_peak, return_free_memory
from .timing import Timer, Times

NUM_STATES, NUM_SYMBOLS, SIZE, WIDE = 2, 3, 5, 64


class LongSequence(NamedTuple):
    """One sequence.

    Attributes:
        length: n.
        window: D, the steps that a nondeterministic stack remembers, or the elements that a superposition stack holds;
            None for no limit.
        stack: "nd", "sup" or "strat".
    """

    length: int
    window: int | None
    stack: str = "nd"

    def inputs(self, dtype: torch.dtype) -> list[Tensor]:
        """Random arguments of the stack that require gradients."""
        generator = torch.Generator().manual_seed(0)
        steps, target = (1, self.length), (NUM_STATES, NUM_SYMBOLS)
        source = (*steps, *target)
        shapes: dict[str, list[tuple[int, ...]]] = {
            "nd": [(*source, *target), (*source, *target), (*source, NUM_STATES), (*steps, SIZE), (SIZE,)],
            "sup": [(*steps, 3), (*steps, WIDE)],
            "strat": [steps, steps, (*steps, WIDE)],
        }
        arguments = [torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes[self.stack]]
        if self.stack == "sup":
            arguments[0] = arguments[0].softmax(-1)
        if self.stack == "strat":
            arguments[:2] = [x.sigmoid() for x in arguments[:2]]
        return [x.requires_grad_() for x in arguments]

    def readings(self, inputs: Sequence[Tensor], backend: str = "auto") -> Tensor:
        """What the stack reads, given its arguments."""
        if self.stack == "nd":
            push, replace, pop, values, bottom = inputs
            return nondeterministic_stack(push, replace, pop, values, bottom, window=self.window, backend=backend)
        if self.stack == "sup":
            actions, values = inputs
            return superposition_stack(actions, values, depth_limit=self.window, backend=backend)
        pop, push, values = inputs
        return stratification_stack(pop, push, values, backend=backend)


LONG_SEQUENCES = (
    LongSequence(500, None),
    *(LongSequence(n, 35) for n in (1_000, 3_000, 10_000)),
    LongSequence(10_000, 64),
    LongSequence(5_000, None, "sup"),
    *(LongSequence(n, 100, "sup") for n in (5_000, 20_000, 80_000)),
    *(LongSequence(n, None, "strat") for n in (1_000, 5_000)),
)


def check_long_sequence(case: LongSequence) -> float:
    """Compare the readings of a sequence of at most 300 steps with another backend's in float64.

    Returns:
        The largest error, relative to the largest element.

    Raises:
        Disagreement: if it is too large.
    """
    inputs = [x.detach() for x in case._replace(length=min(case.length, 300)).inputs(torch.float32)]
    expected = case.readings([x.double() for x in inputs], "reference" if case.stack == "strat" else "pytorch")
    error = normwise_error(case.readings(inputs), expected)
    refuse_if_wrong(f"a stack is wrong: with {case}, readings differ", error, torch.float32)
    return error


def passes_of(case: LongSequence, timer: Timer) -> Callable[[], Times]:
    """A run of the forward and the backward pass, which returns their seconds."""
    inputs = case.inputs(torch.float32)

    def run() -> Times:
        lap = timer.start()
        readings = case.readings(inputs)
        forward = lap()
        torch.autograd.grad(readings, inputs, torch.ones_like(readings))
        return forward, lap()

    return run


def megabytes_of(case: LongSequence, timer: Timer) -> float:
    """Peak extra memory of both passes, in this process, which has given back what it had kept."""
    run = passes_of(case, timer)
    release_buffers()
    return_free_memory()
    before = reset_peak()
    run()
    return (peak_bytes() - before) / MEGABYTE
