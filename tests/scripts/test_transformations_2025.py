"""scripts/experiments/transformations_2025.smk: question formation and tense reinflection."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.scripts.test_experiments import experiment, planned_trainings


def test_it_is_planned(tmp_path: Path, server: Server) -> None:
    """The models of each task have presets."""
    tasks, kinds = "question-formation,tense-reinflection", "tf,tf-sup,tf-nd,tf-sup-x2,tf-nd-x2,tf-strat"
    trainings = planned_trainings(server, "transformations_2025", tmp_path, tasks=tasks, kinds=kinds, seeds=1)
    presets = {words[words.index("--arch") + 1] for words in trainings}
    assert len(presets) == 2 * 5  # tf-strat is tf-sup with another stack


@pytest.mark.hostile
def test_it_runs(tmp_path: Path, server: Server) -> None:
    experiment(server, "transformations_2025", tmp_path, limit=60, kinds="tf-strat", seeds="1,2", epochs=2)
    (path,) = tmp_path.glob("transformations-2025/*/table.md")
    share = r" +\d+\.\d ± \d+\.\d \|"
    rest = r" +0\.\d{3} ± 0\.\d{3} \| +0\.\d{3} ± 0\.\d{3} \| +-?\d+\.\d\d ± \d+\.\d\d \|"
    subjects = r" RO [\d.]+ ± [\d.]+, RSt [\d.]+ ± [\d.]+, RSi [\d.]+ ± [\d.]+ \|"
    row = rf"^\| question-formation +\| +tf-strat \| +2\d\d,\d{{3}} \|{3 * share}{rest}{subjects} +\d+ ± \d+ \|$"
    assert re.search(row, path.read_text(encoding="utf-8"), re.MULTILINE)
    (picture,) = tmp_path.glob("transformations-2025/*/curves.png")
    assert picture.stat().st_size > 10_000
    for run in tmp_path.glob("question-formation-limit-60/*/tf-strat-seed-?"):
        with (run / "curve.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        assert len(rows) == 4 * len(list(run.glob("checkpoint_*_*.pt"))) > 4
        assert {row["subject"] for row in rows} == {"all", "RO", "RSt", "RSi"}
        clauses = json.loads((run / "clause.json").read_text(encoding="utf-8"))
        assert clauses["pairs"] == 60 and list(clauses["stacks"]["untrained"]) == ["decoder.layers.2"]
