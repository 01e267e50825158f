"""fairseq-stack inspect of a model that parses: its numbers against parses of the beam, pictures, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import LanguageModelHub
from fairseq_stack.hub.parse_beams import BEAM_SIZE
from fairseq_stack.inspection.parses import inspect_parses
from fairseq_stack.modules import parse_all
from fairseq_stack.ops import stack_tape
from tests.end_to_end.fairseq_commands import hub_of
from tests.modules.pushdown import parse

TEXT = "a b c d a"


@pytest.fixture
def hub(pushdown_model: Path) -> LanguageModelHub:
    return hub_of(pushdown_model)


def inspect(*arguments: Any) -> int:
    return cli.main(["inspect", *map(str, arguments)])


def numbers(model: Path, folder: Path, *options: Any) -> dict[str, Any]:
    output = folder / "numbers.json"
    assert inspect(model, "--text", TEXT, "--output", output, *options) == 0
    content: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
    return content


def test_numbers_of_a_beam(pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path) -> None:
    actual = numbers(pushdown_model, tmp_path, "--runs", 3, "--beam", 5)
    assert (actual["tokens"], actual["beam"]) == (["ROOT", *TEXT.split()], 5)
    parses = parse(hub.models[0].decoder.network, hub.encode(TEXT)[:-1], beam_size=5)
    shares = (parses.log_probabilities - parses.log_probability).exp()
    for number, record in enumerate(actual["parses"]):
        attachments = parses.attachments[number].tolist()
        assert record["attachments"] == [0, *attachments]
        assert record["log_probability"] == pytest.approx(float(parses.log_probabilities[number]), abs=1e-4)
        assert sum(record["log_words"]) + sum(record["log_attachments"]) == pytest.approx(
            record["log_probability"], abs=1e-9
        )
        assert record["share"] == pytest.approx(float(shares[number]), abs=1e-9)
        tape = stack_tape(torch.tensor([[0, *attachments]]))[0].tolist()
        assert record["tape"] == [row[: t + 1] for t, row in enumerate(tape)]
        assert [layer["layer"] for layer in record["attention"]] == [
            "decoder.network.layers.0",
            "decoder.network.layers.2",
        ]
        weights = torch.tensor(record["attention"][0]["weights"])
        assert weights.shape == (2, 6, 6)
        assert torch.allclose(weights.sum(2), torch.ones(2, 6)) and not weights.triu(1).any()
    assert len(actual["parses"]) == 3


def test_a_given_tree(pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path) -> None:
    """Among all parses of the sentence it has the same probability."""
    actual = numbers(pushdown_model, tmp_path, "--tree", "(S (A (W a) (W b)) (B (W c) (C (W d) (W a))))")
    (record,) = actual["parses"]
    assert (record["brackets"], record["share"], actual["beam"]) == ("((a b) (c (d a)))", None, None)
    parses = parse(hub.models[0].decoder.network, hub.encode(TEXT)[:-1], beam_size=100)
    (place,) = [n for n, r in enumerate(parses.attachments.tolist()) if [0, *r] == record["attachments"]]
    assert record["log_probability"] == pytest.approx(float(parses.log_probabilities[place]), abs=1e-4)
    sentence = inspect_parses(hub, TEXT, tree="((a b) (c (d a)))")
    assert [list(sentence.tokens_of(word)) for word in (1, 5)] == [[1], [5]]
    assert sentence.parses[0].brackets == record["brackets"]


def test_when_a_word_is_predicted(pushdown_model: Path, hub: LanguageModelHub, tmp_path: Path) -> None:
    """The parse is of the words before it; a tree is cut there."""
    options = ["--show", "attention", "--verb", "d", "--subject", 1, "--distractors", "b,3"]
    actual = numbers(pushdown_model, tmp_path, *options)
    network = hub.models[0].decoder.network
    (parses,) = parse_all(network, hub.encode("a b c")[None, :-1], beam_size=BEAM_SIZE, are_prefixes=True)
    (record,) = actual["parses"]
    assert record["attachments"] == [0, *parses.attachments[0].tolist()]
    assert record["log_probability"] == pytest.approx(float(parses.log_probabilities[0]), abs=1e-5)
    assert actual["predicted"] == "d" and actual["tokens"] == ["ROOT", "a", "b", "c"]
    mean = torch.tensor([layer["weights"] for layer in record["attention"]]).mean((0, 1))[-1]
    assert actual["mean_attention"] == {
        "subject": pytest.approx([float(mean[1])]),
        "distractors": pytest.approx(mean[2:].tolist()),
    }
    actual = numbers(pushdown_model, tmp_path, "--show", "attention", "--verb", 1)
    assert (actual["tokens"], actual["parses"][0]["log_probability"]) == (["ROOT"], 0)
    (record,) = numbers(pushdown_model, tmp_path, *options, "--tree", "((a b) (c (d a)))")["parses"]
    assert record["brackets"] == "(a b) c"


def test_unknown_words_are_named(pushdown_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ["--text", "a zebra <unk> b", "--output", str(tmp_path / "parse.txt")]
    assert inspect(pushdown_model, *text) == 0
    assert capsys.readouterr().err.splitlines()[-1] == "the model does not know 'zebra': it reads <unk> there"


MISTAKES: list[tuple[list[Any], str]] = [
    (["--show", "runs"], "--show runs: expected one of tape, tree, attention for a model that parses"),
    (["--layer", "all"], "--layer: not an option for a model that parses; leave it out"),
    (["--runs", 2], "--runs 2: --show tape draws the best parse only"),
    (["--beam", 0], "--beam must be at least 1, got 0"),
    (["--beam", 2, "--tree", "a b c d a"], "--beam: not an option for a model that parses with --tree; leave it out"),
    (["--verb", "d"], "--verb is for --show attention"),
    (["--show", "attention", "--verb", ""], "--verb : expected a word that the sentence has once, or a number"),
    (["--show", "attention", "--subject", "b"], "--subject and --distractors need --verb"),
    (["--show", "attention", "--verb", "a"], "--verb a: expected a word that the sentence has once, or a number"),
    (["--show", "attention", "--verb", "b", "--subject", "d"], "--subject d: expected words before the verb, 'b'"),
    (["--text", " "], "expected a sentence with at least one word"),
    (["--text", "a b " * 50], f"sentence 1 ({'a b ' * 11}[...]) has 101 tokens with its end; the model accepts 50"),
    (["--output", "w.tsv"], "--output w.tsv: expected a name that ends with one of .json, .pdf, .png, .svg, .txt"),
]


@pytest.mark.parametrize(("options", "message"), MISTAKES)
def test_mistakes(
    pushdown_model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[Any],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert inspect(pushdown_model, "--text", TEXT, "--output", "w.png", *options) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"fairseq-stack: error: {message}"), error
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--tree", "a", "--beam", 2],
            "--tree, --beam: not an option for weights of one sentence in .png; leave it out",
        ),
        (["--show", "tape"], "--show tape: the model does not parse sentences; expected one of weights, "),
        (["--output", "w.txt"], "--output w.txt: expected a name that ends with one of .json, .pdf, .png, .svg, .gv"),
    ],
)
def test_options_that_other_models_do_not_have(
    language_model: Path, capsys: pytest.CaptureFixture[str], options: list[Any], message: str
) -> None:
    assert inspect(language_model, "--text", "a", "--output", "w.png", *options) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"fairseq-stack: error: {message}")


def test_a_model_that_does_not_parse(language_model: Path) -> None:
    with pytest.raises(UserError, match="the checkpoint holds no model that parses"):
        inspect_parses(hub_of(language_model), "a")
