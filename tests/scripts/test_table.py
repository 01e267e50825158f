"""The tables of experiments with several runs."""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType

import pytest

from fairseq_stack.evaluation.training_log import TrainingLog, Validation


def test_the_best_run_the_mean_and_the_deviation(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = {"tf-1": (0.5, 20.0), "tf-2": (0.25, 23.0), "sup-1": (0.0, 30.0)}

    def log(path: Path) -> TrainingLog:
        return TrainingLog(1234, 56, 1, (Validation(7, losses[path.parent.name][0]),))

    monkeypatch.setattr(script, "read_training_log", log)
    monkeypatch.setitem(
        script.READERS,
        "translation",
        lambda folder: [script.Score("BLEU", losses[folder.name][1], "data:test|how:so")],
    )
    script.main("translation", str(tmp_path / "table.md"), "tf=tf-1,tf-2", "sup=sup-1")
    tables = (tmp_path / "table.md").read_text(encoding="utf-8").split("\n\n")
    cells = [[[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()] for text in tables[::2]]
    assert cells[0][0] == ["model", "parameters", "updates", "training", "valid ppl", "BLEU"]
    assert cells[0][2:] == [
        ["tf", "1,234", "7", "56 s", "1.28", "23.00"],
        ["sup", "1,234", "7", "56 s", "1.00", "30.00"],
    ]
    assert tables[1] == "The best of 2 runs, by the loss on the validation data. Mean and standard deviation:"
    assert cells[1][0] == ["model", "valid ppl", "BLEU"]
    assert cells[1][2:] == [["tf", "1.47 ± 0.26", "21.50 ± 2.12"], ["sup", "1.00", "30.00"]]
    assert tables[3] == "`BLEU|data:test|how:so`\n"


def test_a_run_that_diverged_is_the_last(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {"tf-1": math.nan, "tf-2": 0.25}
    monkeypatch.setattr(
        script, "read_training_log", lambda path: TrainingLog(1, 1, 1, (Validation(7, losses[path.parent.name]),))
    )
    monkeypatch.setitem(script.READERS, "translation", lambda folder: ())
    script.main("translation", str(tmp_path / "table.md"), "tf=tf-1,tf-2")
    best, _, means, _ = (tmp_path / "table.md").read_text(encoding="utf-8").split("\n\n")
    assert best.splitlines()[2].split("|")[5].strip() == "1.28"
    assert means.splitlines()[2].split("|")[2].strip() == "nan"
