"""scripts/experiments/chomsky.smk: taggers with stacks on tasks of Delétang et al. (2023)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.commands.running import Server
from tests.models.building import build_transduction_model, count_parameters, make_dictionary
from tests.scripts.test_experiments import experiment, training_commands


def test_models_have_equal_parameters(tmp_path: Path, server: Server) -> None:
    """Within 1 %."""
    plan = experiment(server, "chomsky", tmp_path, "--dry-run", "--printshellcmds", epochs=None, seeds=1)
    assert plan.returncode == 0, plan.stdout + plan.stderr
    trainings = training_commands(plan)
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
    settings = {"tasks": "divide_by_two", "kinds": "sdpa,delta", "lengths": "5,10", "updates": 2, "limit": 20}
    done = experiment(server, "chomsky", tmp_path, epochs=None, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
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
