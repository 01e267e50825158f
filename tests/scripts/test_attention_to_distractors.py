"""scripts/experiments/attention_to_distractors.py: the weights of two nouns when a verb is predicted."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from fairseq_stack.evaluation.syntaxgym import CATEGORIES
from fairseq_stack.hub.interface import load
from fairseq_stack.inspection.parses import inspect_parses
from tests.commands.running import REPOSITORY

MODEL = str(REPOSITORY / "examples" / "models" / "pushdown-dyck")
REGIONS = {
    "intro": "(a",
    "np_sing": "(b",
    "prep": "(a a)",
    "the": "",
    "prep_np": "(c",
    "matrix_v": "c)",
    "continuation": "b)",
}


def suite(name: str) -> dict[str, object]:
    """A suite with one item; the sentence with the wrong verb is not read."""
    names = dict(enumerate(REGIONS, 1))
    conditions = [
        {
            "condition_name": condition,
            "regions": [
                {"region_number": number, "content": verb if region == "matrix_v" else REGIONS[region]}
                for number, region in names.items()
            ],
        }
        for condition, verb in (("match_sing", "c)"), ("mismatch_sing", "not a bracket"))
    ]
    return {
        "meta": {"name": name, "metric": "sum"},
        "region_meta": {str(number): region for number, region in names.items()},
        "predictions": [{"type": "formula", "formula": "(6;%match_sing%)<(6;%mismatch_sing%)"}],
        "items": [{"item_number": 1, "conditions": conditions}],
    }


def test_the_weights_of_both_nouns(script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in CATEGORIES["agreement"]:
        (tmp_path / f"{name}.json").write_text(json.dumps(suite(name)))
    script.main(str(tmp_path), str(tmp_path / "out.json"), MODEL)
    weights = inspect_parses(load(MODEL), "(a (b (a a) (c c) b)", before=6).parses[0].mean_attention()[5]
    estimates = json.loads((tmp_path / "out.json").read_text())[MODEL]
    assert estimates.keys() == set(CATEGORIES["agreement"])
    for nouns in estimates.values():
        assert nouns["subject"]["value"] == pytest.approx(float(weights[2]), abs=1e-9)
        assert nouns["noun in between"]["value"] == pytest.approx(float(weights[5]), abs=1e-9)
    assert capsys.readouterr().out.count(MODEL) == len(estimates)
