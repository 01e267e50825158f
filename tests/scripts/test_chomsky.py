"""scripts/experiments/chomsky.smk: taggers with stacks on tasks of Delétang et al. (2023)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Server
from tests.models.building import build_transduction_model, count_parameters, make_dictionary
from tests.scripts.test_experiments import experiment, planned_trainings


def test_models_have_equal_parameters(tmp_path: Path, server: Server) -> None:
    """Within 1 %."""
    trainings = planned_trainings(server, "chomsky", tmp_path, epochs=None, seeds=1)
    assert len(trainings) == 4 * 4
    counts = []
    for words in trainings:
        options = words[words.index("--causal") : words.index("--seed")]
        counts.append(
            count_parameters(build_transduction_model("stack_tagger_transformer", make_dictionary(3), *options))
        )
    assert max(counts) / min(counts) < 1.01, sorted(set(counts))


@pytest.mark.hostile
def test_it_runs(tmp_path: Path, server: Server) -> None:
    settings: dict[str, Any] = {"kinds": "sdpa,delta", "lengths": "5,10", "updates": 2, "limit": 20}
    experiment(server, "chomsky", tmp_path, epochs=None, tasks="divide_by_two", **settings)
    (path,) = tmp_path.glob("chomsky/updates-2-*/table.md")
    header, _, *rows = path.read_text(encoding="utf-8").splitlines()
    assert re.split(r" *\| *", header)[1:-1] == [*("task", "model", "parameters", "valid", "5", "10", "ms per update")]
    share = r" +\d+\.\d ± \d+\.\d \|"
    assert [
        re.findall(rf"^\| divide_by_two +\| +(\S+) \| +4\d,\d\d\d \|{3 * share} +\d+ ± \d+ \|$", row) for row in rows
    ] == [
        ["sdpa"],
        ["delta"],
    ]
