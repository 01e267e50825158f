"""fairseq-stack inspect: pictures and numbers of trained models, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import BARE_LANGUAGE_MODEL, BARE_RECURRENT, TRAINING, run
from tests.helpers import hostile


def inspect(*arguments: Any) -> int:
    return cli.main(["inspect", *map(str, arguments)])


def test_numbers(translation_model: Path, language_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "weights.json"
    assert inspect(translation_model, "--text", "a b", "--translation", "B A A", "--output", output) == 0
    encoder, decoder = json.loads(output.read_text())
    assert (encoder["layer"], encoder["inputs"]) == ("encoder.layers.2", ["a", "b", "</s>"])
    assert (decoder["layer"], decoder["inputs"]) == ("decoder.layers.0", ["</s>", "B", "A", "A"])
    assert [len(row) for row in decoder["weights"]] == [5] * 4
    assert inspect(language_model, "--text", "a b", "--output", output) == 0
    (decoder,) = json.loads(output.read_text())
    assert decoder["inputs"] == ["</s>", "a", "b"]
    assert all(sum(row) == pytest.approx(1) for row in decoder["weights"])


def layers_of(output: Path) -> list[str]:
    return [stack["layer"] for stack in json.loads(output.read_text())]


def test_layers(translation_model: Path, tmp_path: Path) -> None:
    """Without --layer it is the nondeterministic stacks, if there are any."""
    output = tmp_path / "numbers.json"
    arguments = [translation_model, "--text", "a b", "--translation", "B A", "--output", output]
    assert inspect(*arguments) == 0
    assert layers_of(output) == ["encoder.layers.2", "decoder.layers.0"]
    assert inspect(*arguments, "--layer", "all") == 0
    assert layers_of(output) == ["encoder.layers.1", "encoder.layers.2", "decoder.layers.0", "decoder.layers.2"]
    assert inspect(*arguments, "--layer", "encoder.layers.1") == 0
    (stack,) = json.loads(output.read_text())
    assert [sum(x) for x in zip(*stack["actions"].values(), strict=True)] == pytest.approx([1] * 3)


def test_stacks_of_an_lstm(corpora: Corpora, tmp_path: Path) -> None:
    """Without nondeterministic stacks, all stacks are shown; the LSTM does not read the beginning of a sentence."""
    folder, output = tmp_path / "model", tmp_path / "numbers.json"
    stacks = ["--stack", "strat-3+sup-3", "--stack-depth-limit", 2]
    run("train", corpora.language_modeling, *BARE_RECURRENT, *stacks, *TRAINING, "--max-epoch", 1, "--save-dir", folder)
    assert inspect(folder, "--text", "a b c", "--output", output) == 0
    strat, sup = json.loads(output.read_text())
    assert [stack["inputs"] for stack in (strat, sup)] == [["a", "b", "c"]] * 2
    assert [len(strat[name]) for name in ("pop", "push", "strengths", "weights")] == [3] * 4
    picture = tmp_path / "operations.png"
    assert inspect(folder, "--text", "a b c", "--show", "operations", "--output", picture) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_runs(language_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "numbers.json"
    assert inspect(language_model, "--text", "a b c", "--runs", 3, "--output", output) == 0
    (stack,) = json.loads(output.read_text())
    weights = [run["log_weight"] for run in stack["runs"]]
    assert weights == sorted(weights, reverse=True) and len(weights) == 3
    assert [len(run["stacks"]) for run in stack["runs"]] == [5] * 3
    assert weights[0] < stack["log_partition"]


@pytest.mark.parametrize(
    ("shown", "text"),
    [("operations", "a"), hostile("operations", "a b c d " * 9), hostile("runs", "a"), ("runs", "a b c d " * 9)],
)
def test_other_pictures(translation_model: Path, tmp_path: Path, shown: str, text: str) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "picture.svg"
    arguments = ["--text", text, "--layer", "all", "--show", shown, "--runs", 2, "--least", 0.01]
    assert inspect(translation_model, *arguments, "--output", output) == 0
    assert output.read_bytes().startswith(b"<?xml")


def test_texts(language_model: Path, tmp_path: Path) -> None:
    starts = {".tsv": "number\tinput\ttransition\tprobability\n1\t</s>\t", ".tex": r"\begin{tabular}", ".gv": "digraph"}
    for suffix, start in starts.items():
        output = tmp_path / f"text{suffix}"
        assert inspect(language_model, "--text", "a b c", "--least", 0.01, "--output", output) == 0
        assert output.read_text().startswith(start)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_pictures(corpora: Corpora, translation_model: Path, tmp_path: Path, suffix: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / f"weights.{suffix}"
    data = ["--data", corpora.translation]
    assert inspect(translation_model.parent, *data, "--text", "a b c d", "--output", output) == 0
    assert output.read_bytes().startswith(start)


def test_mistakes(corpora: Corpora, language_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = tmp_path / "plain"
    run("train", corpora.language_modeling, *BARE_LANGUAGE_MODEL, *TRAINING, "--max-epoch", 1, "--save-dir", plain)
    capsys.readouterr()
    for arguments, message in (
        ([plain, "--text", "a", "--output", "w.png"], "has no nondeterministic stack attention"),
        ([language_model, "--text", "a", "--output", "w.txt"], "expected a name that ends with one of .json, .pdf,"),
        ([language_model, "--text", "a b " * 50, "--output", "w.png"], "sentence 1 has 101 tokens; the model accepts"),
        ([language_model, "--text", "a", "--translation", "a", "--output", "w.png"], "and no translation"),
        (
            [language_model, "--text", "a", "--layer", "x", "--output", "w.png"],
            "expected 'all' or a stack of the",
        ),
        ([language_model, "--text", "a", "--runs", 0, "--output", "w.png"], "--runs: expected at least 1, got 0"),
        ([language_model, "--text", "a", "--least", 2, "--output", "w.png"], "--least: expected a number from 0 to 1"),
        (
            [language_model, "--text", "a", "--layer", "decoder.layers.2", "--show", "runs", "--output", "w.png"],
            "--show runs: expected a nondeterministic stack",
        ),
        (
            [language_model, "--text", "a", "--layer", "decoder.layers.2", "--output", "w.gv"],
            "expected one nondeterministic stack, got none",
        ),
        ([tmp_path, "--text", "a", "--output", "w.png"], "neither checkpoint_best.pt nor checkpoint_last.pt"),
        ([plain, "--data", tmp_path, "--text", "a", "--output", "w.png"], "has no dictionary (dict*.txt)"),
    ):
        assert inspect(*arguments) == 2
        errors = capsys.readouterr().err.splitlines()
        assert message in errors[-1], errors
        assert errors[-1].startswith("fairseq-stack: error: ")
    assert not Path("w.png").exists() and not Path("w.gv").exists()
