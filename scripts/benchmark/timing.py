"""Times: things to be compared run in turn, and the fastest of several runs counts."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import torch

from .agreement import cotangent_for, leaves
from .stacks import Case
from .variants import Variant

Key = TypeVar("Key")
Times = tuple[float, ...]

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


def least_times(runs: Mapping[Key, Callable[[], Times]], repeats: int, seconds: float) -> dict[Key, Times]:
    """The least times of several things, one run of each in turn, so that all see the same disturbances.

    Each round has another order, since a run that follows one of much memory finds less of its own in the caches.

    Args:
        runs: what to run once; each returns the times of its parts.
        repeats: how often each is run.
        seconds: a thing that has taken this long runs at most three times.
    """
    least: dict[Key, Times] = {}
    spent = dict.fromkeys(runs, 0.0)
    orders = random.Random(0)
    for repeat in range(repeats):
        for key in orders.sample(list(runs), len(runs)):
            if repeat >= FEWEST_RUNS and spent[key] > seconds:
                continue
            times = runs[key]()
            spent[key] += sum(times)
            least[key] = tuple(min(pair) for pair in zip(times, least.get(key, times), strict=True))
    return least


def forward_and_backward(case: Case, variant: Variant, timer: Timer) -> Callable[[], Times]:
    """A run of a variant on a case, which returns the seconds that forward and backward pass took."""
    inputs = leaves(case.inputs(variant.dtype, timer.device))
    cotangent = cotangent_for(case, inputs)

    def run() -> Times:
        with variant.active():
            lap = timer.start()
            readings = variant.compute(inputs)
            forward = lap()
            gradients = torch.autograd.grad(readings, [*inputs.values()], cotangent)
            backward = lap()
        del gradients
        return forward, backward

    return run
