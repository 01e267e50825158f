"""The table and the picture of an experiment."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.cli.report.experiment import (
    Experiment,
    LanguageModelResult,
    TranslationResult,
    model_names,
    read_language_model_result,
    read_translation_result,
    require_as_many,
)
from fairseq_stack.cli.report.picture import draw
from fairseq_stack.cli.report.tables import as_json, as_markdown
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.scores import Score
from fairseq_stack.evaluation.training_log import TrainingLog, Validation
from fairseq_stack.inspection.stack_weights import StackWeights

KINDS = ("tf", "sup", "nd")


def score(value: float) -> Score:
    return Score("name", value, "", "data", "tok:none")


TRAINING = TrainingLog(42_979, 61, 1, (Validation(50, 1.0), Validation(100, math.log(2)), Validation(150, 0.8)))
TRANSLATION = TranslationResult(TRAINING, score(81.26), score(0.5), {0: 0.75, 1: 0.25})
REVERSAL = LanguageModelResult(TRAINING, score(math.log(3)), score(0.1234), {10: 0.1, 12: 0.2})
EXPERIMENT = Experiment(dict.fromkeys(KINDS, TRANSLATION), dict.fromkeys(KINDS, REVERSAL), 0.44)
READING = StackWeights(
    "decoder.layers.0",
    ("</s>", "the", "dog"),
    torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.0, 0.5]]),
)


def test_markdown() -> None:
    lines = as_markdown(EXPERIMENT).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert rows[2] == "| tf    |     42,979 |     150 |     61 s |     2.000 | 81.3 |      50.0 % |"
    assert rows[-1] == "| nd    |     42,979 |     150 |     61 s |    3.000 |        1.099 |           0.123 |"
    assert len(rows) == 10
    assert len({len(row) for row in rows[:5]}) == len({len(row) for row in rows[5:]}) == 1


def test_json_holds_everything() -> None:
    results = json.loads(json.dumps(as_json(EXPERIMENT)))
    assert results["translation"]["sup"] == {
        "training": results["reversal"]["nd"]["training"],
        "bleu": 81.26,
        "signature": "tok:none",
        "exact_match": 0.5,
        "exact_match_by_depth": {"0": 0.75, "1": 0.25},
    }
    assert results["reversal"]["nd"]["training"]["validations"][0] == {"updates": 50, "loss": 1.0}
    assert results["valid_bound"] == 0.44


def test_every_kind_has_a_name() -> None:
    names = model_names()
    assert list(names) == ["tf", "sup", "nd", "ns", "strat"]
    assert (names["tf"], names["sup"]) == ("tf: no stack", "sup: superposition")


def test_the_picture_shows_the_results(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(EXPERIMENT, READING, tmp_path / "first.png")
    draw(EXPERIMENT, READING, tmp_path / "again.png")
    picture = (tmp_path / "first.png").read_bytes()
    assert picture.startswith(b"\x89PNG\r\n")
    assert picture == (tmp_path / "again.png").read_bytes()
    worse = replace(REVERSAL, excess_by_length={10: 0.1, 12: 0.9})
    other = replace(EXPERIMENT, reversal=EXPERIMENT.reversal | {"sup": worse})
    draw(other, READING, tmp_path / "other.png")
    assert picture != (tmp_path / "other.png").read_bytes()


def write_language_model(task: Path, scores: str, bounds: str) -> None:
    text, model = task / "corpus" / "text", task / "nd"
    text.mkdir(parents=True)
    model.mkdir()
    (text / "test.nll").write_text(bounds, encoding="utf-8")
    (model / "score-test.out").write_text(scores, encoding="utf-8")
    (model / "train.log").write_text(
        'num. shared model params: 10 (num. trained: 10)\n{"valid_loss": "1", "valid_num_updates": "5"}\n',
        encoding="utf-8",
    )


def test_reading_a_language_model(tmp_path: Path) -> None:
    write_language_model(tmp_path, "0 0 [-1.0]\t0 [-1.5]\t</s> [-0.5]\n", "2.25\t2.00\n")
    result = read_language_model_result(tmp_path, "nd")
    assert result.cross_entropy.value == pytest.approx(1.0)
    assert result.excess.value == pytest.approx(0.25)
    assert result.excess_by_length == pytest.approx({2: 0.25})
    assert result.training.parameters == 10


def test_scores_of_another_corpus(tmp_path: Path) -> None:
    write_language_model(tmp_path, "0 0 [-1.0]\t</s> [-0.5]\n", "1.0\t1.0\n2.0\t2.0\n")
    with pytest.raises(ValueError, match=r"score-test\.out: 1 sentences, expected 2"):
        read_language_model_result(tmp_path, "nd")


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
