"""fairseq-stack inspect: pictures and numbers of trained models, and mistakes in one line."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_RECURRENT, TRAINING, run


def inspect(*arguments: Any) -> int:
    return cli.main(["inspect", *map(str, arguments)])


def layers_of(output: Path) -> list[str]:
    return [stack["layer"] for stack in json.loads(output.read_text())]


def test_layers(translation_model: Path, language_model: Path, tmp_path: Path) -> None:
    """Without --layer it is the nondeterministic stacks, if there are any."""
    output = tmp_path / "numbers.json"
    arguments = [translation_model, "--text", "a b", "--translation", "B A A", "--output", output]
    assert inspect(*arguments) == 0
    encoder, decoder = json.loads(output.read_text())
    assert (encoder["layer"], encoder["inputs"]) == ("encoder.layers.2", ["a", "b", "</s>"])
    assert (decoder["layer"], decoder["inputs"]) == ("decoder.layers.0", ["</s>", "B", "A", "A"])
    assert [len(row) for row in decoder["weights"]] == [5] * 4
    assert inspect(*arguments, "--layer", "all") == 0
    assert layers_of(output) == ["encoder.layers.1", "encoder.layers.2", "decoder.layers.0", "decoder.layers.2"]
    assert inspect(*arguments, "--layer", "encoder.layers.1") == 0
    (stack,) = json.loads(output.read_text())
    assert [sum(x) for x in zip(*stack["actions"].values(), strict=True)] == pytest.approx([1] * 3)
    assert inspect(language_model, "--text", "a b", "--output", output) == 0
    (decoder,) = json.loads(output.read_text())
    assert decoder["inputs"] == ["</s>", "a", "b"]
    assert all(sum(row) == pytest.approx(1) for row in decoder["weights"])


def test_stacks_of_an_lstm(corpora: Corpora, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    capsys.readouterr()
    assert inspect(folder, "--text", "", "--output", picture) == 2
    assert capsys.readouterr().err.endswith(
        "sentence 1 is empty; expected a word, since the model does not read </s>\n"
    )


@pytest.mark.parametrize(
    ("shown", "text", "option"),
    [("transitions", "a", ["--least", 0.01]), ("runs", "a b c d " * 9, ["--runs", 2])],
)
def test_other_pictures(
    translation_model: Path,
    tmp_path: Path,
    shown: str,
    text: str,
    option: list[Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    output = tmp_path / "picture.svg"
    arguments = ["--text", text, "--layer", "all", "--show", shown, *option]
    assert inspect(translation_model, *arguments, "--output", output) == 0
    assert output.read_bytes().startswith(b"<?xml")
    shares = re.findall(
        r"^(best run|run 2) of (.*) \(\S+ % of the weight of all runs(?:; .*)?\)$", capsys.readouterr().err, re.M
    )
    layers = ("layer 3 of the encoder", "layer 1 of the decoder") if shown == "runs" else ()
    assert shares == [(run, layer) for layer in layers for run in ("best run", "run 2")]


@pytest.mark.parametrize("model", ["language_model", "translation_model"])
def test_lines_of_data(corpora: Corpora, model: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """As the same text, with the translation that the data have."""
    checkpoint, output = request.getfixturevalue(model), tmp_path / "numbers.json"
    lines = {side: (corpora.text / f"valid.{side}").read_text().splitlines() for side in ("src", "tgt")}
    is_translation = model == "translation_model"
    data = ["--data", corpora.translation if is_translation else corpora.language_modeling]
    for number in (1, 6):
        source, target = (lines[side][number - 1] for side in ("src", "tgt"))
        actual = []
        for sentence in (
            ["--split", "valid", "--line", number],
            ["--text", source, *(["--translation", target] if is_translation else [])],
        ):
            assert inspect(checkpoint, *data, *sentence, "--layer", "all", "--output", output) == 0
            actual.append(json.loads(output.read_text()))
        assert actual[0] == actual[1] and actual[0][-1]["inputs"][1:] == (target if is_translation else source).split()
    if not is_translation:
        text = ["--file", corpora.text / "valid.src", "--line", 6]
        assert inspect(checkpoint, *text, "--layer", "all", "--output", output) == 0
        assert json.loads(output.read_text()) == actual[0]


def test_readings(corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "readings.json"
    data = ["--data", corpora.translation, "--split", "valid", "--show", "readings"]
    assert inspect(translation_model, *data, "--by", "prediction", "--output", output) == 0
    (stack,) = json.loads(output.read_text())
    targets = (corpora.text / "valid.tgt").read_text().splitlines()
    assert stack["layer"] == "decoder.layers.0" and stack["size"] == 2 * 2 * 3
    assert [(x["sentence"], x["symbol"]) for x in stack["readings"]] == [
        (number, symbol) for number, line in enumerate(targets, 1) for symbol in [*line.split(), "</s>"]
    ]
    assert all(len(x["components"]) == 2 for x in stack["readings"])
    assert 0 < sum(stack["shares_of_variance"]) <= 1 + 1e-9
    picture = tmp_path / "readings.png"
    assert inspect(translation_model, *data, "--layer", "all", "--output", picture) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_operations_in_many_sentences(corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "operations.json"
    many = ["--data", corpora.translation, "--split", "valid", "--show", "operations"]
    assert inspect(translation_model, *many, "--sentences", 2, "--layer", "encoder.layers.2", "--output", output) == 0
    (stack,) = json.loads(output.read_text())
    words = [x for line in (corpora.text / "valid.src").read_text().splitlines()[:2] for x in [*line.split(), "</s>"]]
    assert {row["symbol"]: row["inputs"] for row in stack["symbols"]} == Counter(words)
    assert list(stack["mean"]) == ["push", "replace", "pop"] and sum(stack["mean"].values()) == pytest.approx(1)
    for name, start in ("operations.tsv", b"layer\tsymbol\tinputs\tpush"), ("operations.png", b"\x89PNG"):
        assert inspect(translation_model, *many, "--layer", "all", "--output", tmp_path / name) == 0
        assert (tmp_path / name).read_bytes().startswith(start)


def test_formats(language_model: Path, tmp_path: Path) -> None:
    starts = {
        ".tsv": b"number\tinput\ttransition\tprobability\n1\t</s>\t",
        ".gv": b"digraph",
    }
    for suffix, start in (starts | {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}).items():
        output = tmp_path / f"stack{suffix}"
        least = ["--least", 0.01] if suffix in starts else []
        assert inspect(language_model, "--text", "a b c", *least, "--output", output) == 0
        assert output.read_bytes().startswith(start)


def test_mistakes(
    corpora: Corpora,
    language_model: Path,
    stock_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = tmp_path / "text"
    text.write_text("a\nb x\n")
    data = f"--data {corpora.language_modeling} --split"
    for options, message in (
        ("--text a --line 1", "--line: expected --file or --split with"),
        ("--split valid --line 1", "--split: name the folder of the"),
        (f"{data} valid", "by --line, or for stacks --show readings or operations"),
        (f"--file {text} --line 2", "text, line 2 has 'x', which"),
        (f"--file {text} --line 3", "has 2 lines, and no line 3"),
        (f"{data} valid --line 7", "valid has 6 lines, and no line 7"),
        (f"{data} valid --line 0", "--line must be at least 1"),
        (f"{data} dev --line 1", "has no dev.idx; expected one of test, train, valid"),
        (f"{data} valid --line 1 --translation a", "--translation: expected --text with it"),
        (f"{data} valid --show readings --output w.tsv", "expected .json or a picture of the"),
        (f"{data} valid --show operations --output w.gv", "expected .json, .tsv or a picture of"),
        ("--text a --output w.txt", "expected a name that ends with one of .json, .pdf,"),
        ("--text a --translation a", "only a translation model reads a translation"),
        ("--text a --title b --output w.json", "--title has no effect: w.json is not a picture"),
        ("--text a --layer x", "expected 'all' or one of the model's stacks"),
        ("--text a --after a", "--after: not an option for weights of one sentence in .png; leave it out"),
        ("--text a --by input --sentences 2", "--sentences, --by: not an option for weights of one"),
        ("--text a --show operations --runs 2", "--runs: not an option for operations of one sentence"),
        ("--text a --show runs --output w.tsv", "--show: not an option for runs of one sentence in .tsv"),
        (f"{data} valid --show operations --by input", "--by: not an option for the operations in many"),
        ("--text a --show readings --sentences 2", "--sentences: not an option for the readings of one"),
        ("--text a --title $\\foo$", "title '$\\\\foo$': ParseFatalException: Unknown symbol"),
        ("--text a --runs 0", "--runs must be at least 1, got 0"),
        ("--text a --least 2", "--least: expected a number from 0 to 1"),
        ("--text a --layer decoder.layers.2 --show runs", "--show runs: expected a nondeterministic stack"),
        ("--text a --layer decoder.layers.2 --output w.gv", "expected one nondeterministic stack, got none"),
        (None, "has no stack to show"),
    ):
        model = language_model if options else stock_model
        assert inspect(model, "--output", "w.png", *(options or "--text a").split()) == 2
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("fairseq-stack: error: ") and message in error
    assert list(tmp_path.iterdir()) == [text]
