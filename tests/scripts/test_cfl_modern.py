"""scripts/experiments/cfl_modern.smk: stacks and the delta rule at equal parameters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Server
from tests.models.building import build_language_model, count_parameters, make_dictionary
from tests.models.test_parameter_counts import TABLE_5
from tests.scripts.test_experiments import experiment, planned_trainings


def test_models_have_equal_parameters(tmp_path: Path, server: Server) -> None:
    """Within 1 % of Tf's, on each language."""
    kinds = set()
    trainings = planned_trainings(server, "cfl_modern", tmp_path, rates="1e-3", seeds=1)
    for words in trainings:
        language, *_, kind = words[words.index("--save-dir") + 1].split("/")
        symbols, _, _, (tf, _, _) = TABLE_5[language]
        options = words[2 : words.index("--seed")]  # those of the model
        model = build_language_model("stack_transformer_lm_tf_cfl", make_dictionary(symbols), *options)
        assert abs(count_parameters(model) / tf - 1) < 0.01, (language, kind, count_parameters(model))
        kinds.add(kind)
    assert len(kinds) == 9 and len(trainings) == 9 * len(TABLE_5)


@pytest.mark.hostile
def test_it_runs(tmp_path: Path, server: Server) -> None:
    """The rate is chosen by the validation data, and what is complete is not done again."""
    settings: dict[str, Any] = {"languages": "dyck", "limit": 20, "kinds": "deltastack", "seeds": 1}
    experiment(server, "cfl_modern", tmp_path, rates="1e-2,1e-9", **settings)
    (path,) = tmp_path.glob("cfl-modern/*/table.md")
    number = r" +\d+\.\d\d\d \|"
    row = rf"^\| dyck +\| +(\S+) \| +43,\d\d\d \| +0\.01 \|{number}{number} +\S+ \| +\d+ \|$"
    assert re.findall(row, path.read_text(encoding="utf-8"), re.MULTILINE) == ["deltastack"]
    of_one_rate = experiment(server, "cfl_modern", tmp_path, "--dry-run", rates="1e-9", **settings)
    assert ": training" not in of_one_rate.stdout + of_one_rate.stderr
