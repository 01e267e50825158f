"""Whole sequences: all backends of a stack."""

from __future__ import annotations

from collections.abc import Sequence

from .agreement import check
from .cases import Case, axes_of, dtype_name, find_variants
from .memory import megabytes
from .tables import PASSES, Columns, Row, error, milliseconds, sizes
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


def measure_stack(cases: Sequence[Case], settings: Settings) -> list[Row]:
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
                    "extra_megabytes": megabytes(case, variant, threads, settings.device),
                    "error": errors[variant],
                }
                for variant in variants
            ]
    return rows
