"""scripts/experiments/learning_table.py: how many runs reach the lower bound."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from fairseq_stack.evaluation.training_log import TrainingLog, Validation


def test_how_many_runs_reach_the_bound(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    above = {"nd-1": 0.004, "nd-2": 0.2}

    def result(path: Path) -> SimpleNamespace:
        scores = SimpleNamespace(difference=SimpleNamespace(value=above[path.parent.name]), bound=1.0)
        return SimpleNamespace(overall=scores, samples=SimpleNamespace(share=0.5))

    def log(path: Path) -> TrainingLog:
        return TrainingLog(1, 1, 1, (Validation(1000, 1.3), Validation(2000, 1.0 + above[path.parent.name])))

    monkeypatch.setattr(script, "CFLResult", SimpleNamespace(read=result))
    monkeypatch.setattr(script, "read_training_log", log)
    row = script.learning_table({"dyck:nd": [Path("nd-1"), Path("nd-2")]}).splitlines()[2]
    cells = ["dyck", "nd", "1 of 2", "0.09 to 0.91", "0.004/0.102/0.200", "50.0", "2,000, never"]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == cells
