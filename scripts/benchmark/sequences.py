"""Whole sequences: all backends of a stack, and the sweep, which compares the one that models use with the best."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fairseq_stack.ops import automatic_backend

from .agreement import check
from .cases import Case, Variant, axes_of, backends_of, dtype_name, find_variants
from .memory import MemoryMeter
from .tables import ABSENT, PASSES, Columns, Row, error, milliseconds, ratio, sizes
from .timing import Settings, passes_of, say


def stack_columns(case: Case) -> Columns:
    return {
        ", ".join(axes_of(case.kind)): sizes,
        "backend": "backend",
        "dtype": "dtype",
        "threads": "threads",
        **PASSES,
        "extra MB": "extra_megabytes",
        "error": error,
    }


def measure_stack(cases: Sequence[Case], settings: Settings, meter: MemoryMeter) -> list[Row]:
    """Check all cases of a stack, and then measure all variants of them.

    Raises:
        Disagreement: a variant computes something else than the reference.
    """
    checked = []
    for case in cases:
        say(f"{case}: comparing with the reference")
        variants = find_variants(case, settings.dtypes, settings.device)
        checked.append((case, variants, check(case, variants, settings.device)))
    rows = []
    for case, variants, errors in checked:
        for threads in settings.each_number_of_threads(f"{case}: measuring"):
            runs = {variant: passes_of(case, variant, settings.timer) for variant in variants}
            times = settings.least_times(runs)
            del runs
            rows += [
                {
                    "stack": case.kind.name,
                    "sizes": case.by_axis(),
                    "backend": variant.name,
                    "dtype": dtype_name(variant.dtype),
                    "threads": threads,
                    **milliseconds(times[variant]),
                    "extra_megabytes": meter.megabytes(case, variant, threads),
                    "error": errors[variant],
                }
                for variant in variants
            ]
    return rows


def sweep_columns(case: Case) -> Columns:
    return {
        ", ".join(axes_of(case.kind)): sizes,
        "auto is": "chosen",
        "threads": "threads",
        "forward ms": "forward_ms",
        "sum ms": "total_ms",
        "auto / best, forward": ratio("times_best_forward"),
        "auto / best, sum": ratio("times_best"),
        "others / auto, sum": lambda row: (
            ", ".join(f"{name} {x:.1f}" for name, x in row["times_chosen"].items()) or ABSENT
        ),
    }


def measure_sweep(cases: Sequence[Case], settings: Settings) -> list[Row]:
    """Measure the backend that models use for the cases, and all others except the reference, in float32.

    Only small cases are checked, since some of these are large.

    Raises:
        Disagreement: the backend that models use computes something else than the reference.
    """
    for case in cases:
        check(case.small(), [Variant("auto", torch.float32)], settings.device)
    rows = []
    for case in cases:
        chosen = automatic_backend(case.op.backends, settings.device).name
        for threads in settings.each_number_of_threads(f"{case}: measuring all backends"):
            variants = backends_of(case, torch.float32, settings.device)
            times = settings.least_times({x.name: passes_of(case, x, settings.timer) for x in variants})
            totals = {name: sum(of_passes) for name, of_passes in times.items()}
            best = min(totals, key=lambda name: totals[name])
            rows.append(
                {
                    "stack": case.kind.name,
                    "sizes": case.by_axis(),
                    "chosen": chosen,
                    "best": best,
                    "threads": threads,
                    "forward_ms": 1e3 * times[chosen][0],
                    "total_ms": 1e3 * totals[chosen],
                    "best_ms": 1e3 * totals[best],
                    "times_best_forward": times[chosen][0] / min(forward for forward, _ in times.values()),
                    "times_best": totals[chosen] / totals[best],
                    "times_chosen": {name: x / totals[chosen] for name, x in totals.items() if name != chosen},
                }
            )
    return rows
