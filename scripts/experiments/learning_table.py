"""How many training runs reach the lower bound of a language; scripts/experiments/table.py writes the table."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.markdown import MISSING, table
from fairseq_stack.evaluation.training_log import read_training_log

AT_THE_BOUND = 0.005  # nats per symbol
NEAR_THE_BOUND = 0.05


def learning_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """How many runs reach the lower bound on validation data, and after how many updates they are near it."""
    rows = []
    for name, folders in runs.items():
        valid, test = ([CFLResult.read(folder / f"{split}.json") for folder in folders] for split in ("valid", "test"))
        above = [result.overall.difference.value for result in valid]
        reached = sum(value <= AT_THE_BOUND for value in above)
        low, high = wilson_interval(reached, len(folders))
        samples = [100 * result.samples.share for result in test if result.samples]
        drops = [updates_until_near(run, result) for run, result in zip(folders, valid, strict=True)]
        rows.append(
            [
                *(*name.split(":"), f"{reached} of {len(folders)}", f"{low:.2f} to {high:.2f}"),
                "/".join(f"{value:.3f}" for value in (min(above), statistics.median(above), max(above))),
                f"{statistics.median(samples):.1f}" if samples else MISSING,
                ", ".join(f"{drop:,}" if drop else "never" for drop in drops),
            ]
        )
    reached_name, near = f"within {AT_THE_BOUND}", f"updates until {NEAR_THE_BOUND}"
    columns = ["language", "model", reached_name, "95 % interval", "least/median/greatest", "samples, %", near]
    return f"{table(columns, rows)}\n"


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Wilson's score interval of a share, 95 %."""
    z = 1.96
    share, scale = successes / trials, 1 + z**2 / trials
    half = z * math.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2)) / scale
    centre = (share + z**2 / (2 * trials)) / scale
    return max(0.0, centre - half), min(1.0, centre + half)


def updates_until_near(run: Path, valid: CFLResult) -> int | None:
    """After how many updates a validation is near the lower bound; None if none is."""
    validations = read_training_log(run / "train.log").validations
    return next((x.updates for x in validations if x.loss <= valid.overall.bound + NEAR_THE_BOUND), None)
