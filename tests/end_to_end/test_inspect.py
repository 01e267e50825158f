"""fairseq-stack inspect: pictures and numbers of trained models, and mistakes in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import BARE_LANGUAGE_MODEL, TRAINING, run


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
        ([tmp_path, "--text", "a", "--output", "w.png"], "neither checkpoint_best.pt nor checkpoint_last.pt"),
        ([plain, "--data", tmp_path, "--text", "a", "--output", "w.png"], "has no dictionary (dict*.txt)"),
    ):
        assert inspect(*arguments) == 2
        errors = capsys.readouterr().err.splitlines()
        assert message in errors[-1], errors
        assert errors[-1].startswith("fairseq-stack: error: ")
    assert not Path("w.png").exists()
