"""The nondeterministic stack of the code of DuSell and Chiang (2024), on the same device as this one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from fairseq_stack.kinds import NONDETERMINISTIC

from .agreement import normwise_error, refuse_if_wrong
from .cases import Case, Variant, axes_of, dtype_name
from .tables import PASSES, Columns, Row, error, milliseconds, ratio, sizes
from .timing import Settings, passes, passes_of

CASES = tuple(Case(NONDETERMINISTIC, x) for x in ((10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5)))

COLUMNS: Columns = {
    ", ".join(axes_of(NONDETERMINISTIC)): sizes,
    "dtype": "dtype",
    "threads": "threads",
    **PASSES,
    "ours, sum ms": "ours_ms",
    "theirs / ours": ratio("times_ours"),
    "error": error,
}


def measure(clone: Path, cases: Sequence[Case], settings: Settings) -> list[Row]:
    """Measure the authors' code and ``backend="auto"`` in turn.

    Raises:
        Disagreement: they compute different readings.
    """
    sys.path.insert(0, str(clone / "src"))
    rows = []
    for case, dtype in ((case, dtype) for case in cases for dtype in settings.dtypes):
        ours = Variant("auto", dtype)
        inputs = case.inputs(dtype, settings.device)
        with torch.no_grad():
            wrong = normwise_error(readings(*inputs.values()), ours.readings(case, inputs))
        refuse_if_wrong(f"the authors' {dtype_name(dtype)} readings differ for {case}", wrong, dtype)
        runs = {
            "theirs": passes(partial(readings, *inputs.values()), [*inputs.values()], settings.timer),
            "ours": passes_of(case, ours, settings.timer),
        }
        for threads in settings.each_number_of_threads(f"{case}: the authors' code"):
            times = settings.least_times(runs)
            rows.append(
                {
                    "sizes": case.by_axis(),
                    "dtype": dtype_name(dtype),
                    "threads": threads,
                    **milliseconds(times["theirs"]),
                    "ours_ms": 1e3 * sum(times["ours"]),
                    "times_ours": sum(times["theirs"]) / sum(times["ours"]),
                    "error": wrong,
                }
            )
    return rows


def readings(push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor) -> Tensor:
    """The readings r_1..r_n of their stack, which has logarithms of vectors."""
    theirs = importlib.import_module("stack_rnn_models.vector_nondeterministic_stack")
    batch_size, length, num_states, num_symbols = pop.shape[:4]
    stack = theirs.get_vector_nondeterministic_stack(
        batch_size=batch_size,
        num_states=num_states,
        stack_alphabet_size=num_symbols,
        stack_embedding_size=values.size(2),
        sequence_length=length,
        bottom_vector=bottom.log(),
        block_size=theirs.AutomaticBlockSize(),
        dtype=push.dtype,
        device=push.device,
        semiring=theirs.log,
    )
    steps = []
    for t in range(length):
        stack.update(push[:, t], replace[:, t], pop[:, t], values[:, t].log())
        steps.append(stack.reading())
    return torch.stack(steps, 1).unflatten(2, (num_states, num_symbols, -1))
