"""How buffered networks of Hao et al. (2018) do; scripts/experiments/table.py writes the table."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_stack.evaluation.markdown import table
from fairseq_stack.evaluation.transduction import LEARNED, TransductionResult


def summary(accuracies: Sequence[float]) -> str:
    """The minimum, the median and the maximum."""
    if not accuracies:
        return ""
    return "/".join(f"{x:.1f}" for x in (min(accuracies), statistics.median(accuracies), max(accuracies)))


def studies_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """Accuracies, how many runs learned the task, with at least 98 % in development, and how many make no mistake."""
    rows, signatures = [], []
    for name, folders in runs.items():
        valid, test = (
            [TransductionResult.read(folder / f"{split}.json") for folder in folders] for split in ("valid", "test")
        )
        known, scores = ([100 * result.overall.accuracy.value for result in results] for results in (valid, test))
        of_learned = [score for score, value in zip(scores, known, strict=True) if value >= 100 * LEARNED]
        perfect = sum(result.overall.correct == result.overall.scored for result in test)
        learned, all_right = (f"{number} of {len(test)}" for number in (len(of_learned), perfect))
        rows.append([name, summary(known), summary(scores), learned, summary(of_learned), all_right])
        signatures.append(f"`{test[0].signature}`")
    columns = ("network", "development", "test", "learned", "test of learned", "all right")
    return "\n\n".join([table(columns, rows), *dict.fromkeys(signatures)]) + "\n"
