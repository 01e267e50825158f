"""Times: things to be compared run in turn, and the fastest of several runs counts."""

from __future__ import annotations

import contextlib
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from .cases import Case, Variant

Key = TypeVar("Key")
Times = tuple[float, ...]
Run = Callable[[], Times]
"""Runs a thing once; returns the seconds that its parts took."""

FEWEST_RUNS = 3


@dataclass(frozen=True)
class Timer:
    """What time is.

    Attributes:
        device: what has to be done before time is read.
        now: reads it, in seconds: ``time.perf_counter``, or ``time.process_time`` for the processor time that work of
            one thread on a CPU takes, which other programs disturb less.
    """

    device: torch.device
    now: Callable[[], float] = time.perf_counter

    def start(self) -> Callable[[], float]:
        """Start a clock: a function that returns the seconds since its last call, or since now at its first call."""
        last = self._read()

        def lap() -> float:
            nonlocal last
            before, last = last, self._read()
            return last - before

        return lap

    def _read(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self.now()


@dataclass(frozen=True)
class Settings:
    """How to measure.

    Attributes:
        timer: measures time, and says on which device.
        dtypes: of the stacks' inputs.
        threads: each of these numbers of threads is measured.
        repeats: runs of which the fastest counts.
        seconds: after this time, three runs are enough.
    """

    timer: Timer
    dtypes: Sequence[torch.dtype]
    threads: Sequence[int]
    repeats: int
    seconds: float

    @property
    def device(self) -> torch.device:
        return self.timer.device

    def each_number_of_threads(self, what: object) -> Iterator[int]:
        """Set torch to each number of threads, and say on standard error that ``what`` is measured."""
        for threads in self.threads:
            torch.set_num_threads(threads)
            say(f"{what}, threads: {threads}")
            yield threads

    def least_times(self, runs: Mapping[Key, Run]) -> dict[Key, Times]:
        """The least times of several things, one run of each in turn, so that all see the same disturbances.

        Each round has another order, since a run that follows one of much memory finds less of its own in the caches.
        """
        least: dict[Key, Times] = {}
        spent = dict.fromkeys(runs, 0.0)
        orders = random.Random(0)
        for repeat in range(self.repeats):
            for key in orders.sample(list(runs), len(runs)):
                if repeat >= FEWEST_RUNS and spent[key] > self.seconds:
                    continue
                times = runs[key]()
                spent[key] += sum(times)
                least[key] = tuple(min(pair) for pair in zip(times, least.get(key, times), strict=True))
        return least


def passes(
    outputs: Callable[[], Tensor],
    inputs: Sequence[Tensor],
    timer: Timer,
    cotangent: Tensor | None = None,
    within: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Run:
    """A run of the forward and the backward pass.

    Args:
        outputs: computes what is differentiated.
        inputs: with respect to what.
        timer: measures both.
        cotangent: the gradient of the outputs (default: ones).
        within: the context of both passes.
    """

    def run() -> Times:
        with within():
            lap = timer.start()
            computed = outputs()
            forward = lap()
            gradient = torch.ones_like(computed) if cotangent is None else cotangent
            gradients = torch.autograd.grad(computed, inputs, gradient)
            backward = lap()
        del gradients
        return forward, backward

    return run


def passes_of(case: Case, variant: Variant, timer: Timer) -> Run:
    """A run of both passes of a variant on a case."""
    inputs = case.inputs(variant.dtype, timer.device)
    leaves = [*inputs.values()]
    return passes(lambda: variant.readings(case, inputs), leaves, timer, case.cotangent(inputs), variant.active)


def say(what: str) -> None:
    """Progress, on standard error."""
    print(f"==> {what}", file=sys.stderr, flush=True)
