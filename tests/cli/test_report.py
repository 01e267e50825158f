"""The table and the picture of an experiment."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack.cli.report.experiment import (
    Experiment,
    LanguageModelResult,
    TranslationResult,
    model_names,
    read_language_models,
    read_translation_result,
    require_as_many,
)
from fairseq_stack.cli.report.picture import draw
from fairseq_stack.cli.report.tables import as_json, as_markdown
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.evaluation.scores import Score
from fairseq_stack.evaluation.training_log import TrainingLog, Validation
from tests.evaluation.cfl_results import BY_LENGTH, cfl_result
from tests.inspection.test_stacks import automaton

KINDS = ("tf", "sup", "nd")


def score(value: float) -> Score:
    return Score("name", value, "", "data", "tok:none")


TRAINING = TrainingLog(42_979, 61, 1, (Validation(50, 1.0), Validation(100, math.log(2)), Validation(150, 0.8)))
TRANSLATION = TranslationResult(TRAINING, score(81.26), score(0.5), {0: 0.75, 1: 0.25})
DYCK = LanguageModelResult(TRAINING, cfl_result())
EXPERIMENT = Experiment(dict.fromkeys(KINDS, TRANSLATION), dict.fromkeys(KINDS, DYCK))


def test_markdown() -> None:
    lines = as_markdown(EXPERIMENT).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows[2] == "| tf    |     42,979 |     150 |     61 s |     2.000 | 81.3 |      50.0 % |"
    assert rows[5] == "| model | parameters | updates | training |    40 |    42 |    44 | samples |"
    assert rows[-1] == "| nd    |     42,979 |     150 |     61 s | 0.250 | 0.500 | 1.000 |    41 % |"
    assert lines[-1] == "cross-entropy difference|language:dyck|split:test|version:fairseq_stack-1"
    assert "by length, after training on lengths 40 to 42, and" in lines[-9]
    assert len(rows) == 10
    assert len({len(row) for row in rows[:5]}) == len({len(row) for row in rows[5:]}) == 1


def test_markdown_of_many_lengths() -> None:
    """The lengths in the table are at equal distances; a result without samples has none in the table."""
    scores = cfl_result(by_length={length: length / 100 for length in range(10, 61, 2)}, samples=None)
    lines = as_markdown(replace(EXPERIMENT, dyck={"nd": LanguageModelResult(TRAINING, scores)})).splitlines()
    (columns, _, row) = [line for line in lines if line.startswith("|")][-3:]
    assert columns.split()[9::2] == ["10", "20", "30", "40", "50", "60", "samples"]
    assert row.split()[-14::2] == ["0.100", "0.200", "0.300", "0.400", "0.500", "0.600", "-"]


def test_json_holds_everything() -> None:
    results = json.loads(json.dumps(as_json(EXPERIMENT)))
    assert results["translation"]["sup"] == {
        "training": results["dyck"]["nd"]["training"],
        "bleu": 81.26,
        "signature": "tok:none",
        "exact_match": 0.5,
        "exact_match_by_depth": {"0": 0.75, "1": 0.25},
    }
    assert results["dyck"]["nd"]["training"]["validations"][0] == {"updates": 50, "loss": 1.0}
    assert [found["difference"]["value"] for found in results["dyck"]["sup"]["scores"]["by_length"]] == [0.25, 0.5, 1]


def test_every_kind_has_a_name() -> None:
    names = model_names()
    assert list(names) == ["tf", "sup", "nd", "ns", "strat"]
    assert (names["tf"], names["sup"]) == ("tf: no stack", "sup: superposition")


def test_the_picture_shows_the_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    stack = automaton()
    draw(EXPERIMENT, stack, tmp_path / "first.png")
    draw(EXPERIMENT, stack, tmp_path / "again.png")
    picture = (tmp_path / "first.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert picture == (tmp_path / "again.png").read_bytes()
    worse = LanguageModelResult(TRAINING, cfl_result(by_length=BY_LENGTH | {42: 0.9}))
    other = replace(EXPERIMENT, dyck=EXPERIMENT.dyck | {"sup": worse})
    draw(other, stack, tmp_path / "other.png")
    assert picture != (tmp_path / "other.png").read_bytes()


def write_language_model(task: Path, kind: str, scores: CFLResult) -> None:
    (task / kind).mkdir()
    scores.write(task / kind / "test.json")
    (task / kind / "train.log").write_text(
        'num. shared model params: 10 (num. trained: 10)\n{"valid_loss": "1", "valid_num_updates": "5"}\n',
        encoding="utf-8",
    )


def test_reading_language_models(tmp_path: Path) -> None:
    for kind, difference in (("nd", 0.125), ("tf", 0.25)):
        write_language_model(tmp_path, kind, cfl_result(difference))
    results = read_language_models(tmp_path)
    assert {kind: result.scores for kind, result in results.items()} == {
        "tf": cfl_result(0.25),
        "nd": cfl_result(0.125),
    }
    assert results["nd"].training.parameters == 10


def test_scores_of_another_corpus(tmp_path: Path) -> None:
    write_language_model(tmp_path, "nd", cfl_result())
    write_language_model(tmp_path, "tf", cfl_result(by_length={40: 0.5}))
    with pytest.raises(UserError, match=r"tf/test\.json and .*nd/test\.json cannot be compared: lengths are 40 in"):
        read_language_models(tmp_path)


def test_translations_of_another_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus" / "text").mkdir(parents=True)
    (tmp_path / "corpus" / "text" / "test.depth").write_text("0\n1\n", encoding="utf-8")
    (tmp_path / "tf").mkdir()
    (tmp_path / "tf" / "generate-test.txt").write_text("S-0\ta\nT-0\ta\nH-0\t-1\ta\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"generate-test\.txt: 1 sentences, expected 2"):
        read_translation_result(tmp_path, "tf")


def test_a_folder_without_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(tmp_path)]) == 2
    assert "does not hold the results of scripts/demo.sh: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert cli.main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("fairseq-stack: error: the picture needs matplotlib; install")


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["report", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert "\nexample:\n  fairseq-stack report " in text
    assert max(map(len, text.splitlines())) <= 85


def test_as_many_as_in_the_corpus() -> None:
    require_as_many(Path("score.out"), 2, 2)
    with pytest.raises(UserError, match=r"^score\.out: 1 sentences, expected 2, as many as in the corpus$"):
        require_as_many(Path("score.out"), 1, 2)
