"""Long sequences: the stacks with limited memory or depth, compared with stacks without a limit."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fairseq_stack.kinds import NONDETERMINISTIC, STRATIFICATION, SUPERPOSITION

from .agreement import check
from .cases import Case, Variant
from .memory import megabytes
from .tables import PASSES, Columns, Row, error, milliseconds
from .timing import Settings, passes_of, say

COLUMNS: Columns = {
    "stack": "stack",
    "n": "length",
    "D": "window",
    **PASSES,
    "x the first row of the stack": "times_unlimited",
    "extra MB": "extra_megabytes",
    "error": error,
}
MOST_CHECKED = 300
VARIANT = Variant("auto", torch.float32)


def automaton(length: int, window: int | None) -> Case:
    """Q = 2, S = 3, m = 5; it remembers ``window`` steps."""
    return Case(NONDETERMINISTIC, (1, length, 2, 3, 5), {"window": window})


def superposition(length: int, depth_limit: int | None) -> Case:
    """m = 64; it holds ``depth_limit`` elements."""
    return Case(SUPERPOSITION, (1, length, 64), {"depth_limit": depth_limit})


CASES = (
    automaton(500, None),
    *(automaton(n, 35) for n in (1_000, 3_000, 10_000)),
    automaton(10_000, 64),
    superposition(5_000, None),
    *(superposition(n, 100) for n in (5_000, 20_000, 80_000)),
    *(Case(STRATIFICATION, (1, n, 64)) for n in (1_000, 5_000)),
)


def measure(cases: Sequence[Case], settings: Settings) -> list[Row]:
    """Check the first steps of the stacks, and then measure both passes, with one thread.

    Raises:
        Disagreement: a stack computes something else than the reference.
    """
    errors = []
    for case in cases:
        shorter = Case(case.kind, (1, min(case.length, MOST_CHECKED), *case.sizes[2:]), case.options)
        errors.append(check(shorter, [VARIANT], settings.device)[VARIANT])
    torch.set_num_threads(1)
    extra = [megabytes(case, VARIANT, 1, settings.device) for case in cases]
    say("long sequences")
    first = {case.kind: number for number, case in reversed([*enumerate(cases)])}
    times = settings.least_times({n: passes_of(case, VARIANT, settings.timer) for n, case in enumerate(cases)})
    return [
        {
            "stack": case.kind.name,
            "length": case.length,
            "window": next(iter(case.options.values()), None),
            **milliseconds(times[number]),
            "times_unlimited": sum(times[number]) / sum(times[first[case.kind]]),
            "extra_megabytes": extra[number],
            "error": errors[number],
        }
        for number, case in enumerate(cases)
    ]
