"""How well models classify; scripts/experiments/table.py writes the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from fairseq_stack.evaluation.classification import ClassificationResult
from fairseq_stack.evaluation.markdown import MISSING, table

SCORES_OF_PROMPTS = {
    "accuracy": "accuracy, %",
    "f1": "F1, %",
    "matthews": "100 Matthews",
    "pearson": "100 Pearson",
    "spearman": "100 Spearman",
}


def classification_table(runs: Mapping[str, Sequence[Path]]) -> str:
    """The scores of each kind in each task, on all sets that were scored; those of its seeds stand side by side."""
    rows = []
    for name, folders in runs.items():
        for split in ("valid", "test", "nonce"):
            if not (folders[0] / f"{split}.json").exists():
                continue
            results = [ClassificationResult.read(run / f"{split}.json") for run in folders]
            scores = [vars(result.classification or result.regression) for result in results]
            cells = [
                " ".join(f"{100 * of_run[score].value:.1f}" for of_run in scores) if score in scores[0] else MISSING
                for score in SCORES_OF_PROMPTS
            ]
            rows.append([*name.split(":"), split, f"{results[0].prompts:,}", *cells])
    return f"{table(['task', 'model', 'set', 'prompts', *SCORES_OF_PROMPTS.values()], rows)}\n"
