"""Decoding with a beam: steps of a state, each after the rows have been reordered."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.modules import StackAttention

from .agreement import normwise_error, refuse_if_wrong
from .cases import Case, axes_of, dtype_name
from .tables import Columns, Row, sizes
from .timing import Run, Settings, Timer, Times


def columns(case: Case) -> Columns:
    return {
        ", ".join(axes_of(case.kind)): sizes,
        "dtype": "dtype",
        "threads": "threads",
        "steps/s": "steps_per_second",
        "ms per step": "step_ms",
        "ms per step at the end": "last_step_ms",
    }


def measure(cases: Sequence[Case], settings: Settings) -> list[Row]:
    """Check decoding of all cases, and then measure it.

    Raises:
        Disagreement: steps compute something else than the pass over the whole sequence.
    """
    beams = {(case, dtype): Beam(case, dtype, settings.device) for case in cases for dtype in settings.dtypes}
    errors = {key: beam.check() for key, beam in beams.items()}
    rows = []
    for (case, dtype), beam in beams.items():
        name = dtype_name(dtype)
        for threads in settings.each_number_of_threads(f"{case}: decoding in {name}"):
            total, last = settings.least_times({case: beam.run(settings.timer)})[case]
            rows.append(
                {
                    "stack": case.kind.name,
                    "sizes": case.by_axis(),
                    "dtype": name,
                    "threads": threads,
                    "steps_per_second": case.length / total,
                    "step_ms": 1e3 * total / case.length,
                    "last_step_ms": 1e3 * last / beam.last_steps,
                    "error": errors[case, dtype],
                }
            )
    return rows


class Beam:
    """A beam of B rows that takes n steps.

    Args:
        case: the stack.
        dtype: of the sublayer.
        device: where it is.
    """

    def __init__(self, case: Case, dtype: torch.dtype, device: torch.device) -> None:
        self._case, self._dtype = case, dtype
        self._module = case.module()
        self._drawn = [x.to(device, dtype) for x in case.steps(self._module)]
        self._module.to(device, dtype)
        generator = torch.Generator().manual_seed(2)
        order = torch.randint(case.batch_size, (case.length, case.batch_size), generator=generator)
        self._order = order.to(device)  # the rows from which each step continues

    @property
    def last_steps(self) -> int:
        """How many steps the last part of a run has."""
        return max(1, self._case.length // 10)

    def check(self) -> float:
        """Compare the last reading with that of the whole sequences, in float64, that the final rows came from.

        Returns:
            The largest error, relative to the largest element.
        """
        batch_size, length = self._case.sizes[:2]
        ancestors = torch.arange(batch_size, device=self._order.device).expand(length, -1).clone()
        for t in range(1, length):
            ancestors[:t] = ancestors[:t, self._order[t]]
        steps = torch.arange(length, device=self._order.device)
        with torch.no_grad():
            *_, reading = self._decode()
            drawn = [x[ancestors.T, steps].double() for x in self._drawn]
            module = self._module.double()
            read = module.readings if isinstance(module, StackAttention) else module
            expected = read(*drawn)[:, -1]
            self._module.to(self._dtype)
        error = normwise_error(reading, expected)
        what = f"decoding {dtype_name(self._dtype)} is wrong: for {self._case}, readings differ"
        refuse_if_wrong(what, error, self._dtype)
        return error

    def run(self, timer: Timer) -> Run:
        """A run of all steps: the seconds that all, and that the last of ten parts, took."""

        def run() -> Times:
            lap = timer.start()
            steps = self._decode()
            with torch.no_grad():
                deque(islice(steps, self._case.length - self.last_steps), maxlen=0)
                before = lap()
                deque(steps, maxlen=0)
            after = lap()
            return before + after, after

        return run

    def _decode(self) -> Iterator[Tensor]:
        """The reading after each step."""
        module = self._module
        state = module.initial_state(self._case.batch_size)
        step: Callable[..., tuple[Tensor, Any]]
        step = module.step_reading if isinstance(module, StackAttention) else module.step
        for order, *drawn in zip(self._order, *(x.unbind(1) for x in self._drawn), strict=True):
            reading, state = step(*[*drawn, state.reorder(order)])
            yield reading
