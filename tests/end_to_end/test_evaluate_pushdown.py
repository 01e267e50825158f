"""fairseq-stack evaluate-pushdown, on strings of brackets and on trees."""

from __future__ import annotations

import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.evaluation.pushdown import PushdownResult, closings
from fairseq_stack.hub.interface import load
from fairseq_stack.ops import stack_tape
from fairseq_stack_preprocess.cfl.bounded_dyck import attachments
from tests.end_to_end.conftest import trained
from tests.end_to_end.fairseq_commands import TRAINING, rows_of, run
from tests.end_to_end.test_pushdown import last

TASK = ["--task", "pushdown_language_modeling"]
MODEL = [
    *(*TASK, "--tokens-per-sample", 100, "--compact-vocab", "--compact-vocab-unk"),
    *("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-attention-heads", 2),
    *("--attachment-depth-size", 8, "--dropout", 0, "--criterion", "pushdown_cross_entropy"),
]
TAPE = [*MODEL, "--arch", "pushdown_transformer_lm_dyck", "--stack-layers", "pushdown"]
BASE = [*MODEL, "--arch", "pushdown_transformer_lm_dyck_base", "--stack-layers", "sdpa"]
RUNS = [*TASK, "--criterion", "operation_cross_entropy", "--arch", "stack_lstm_lm", "--stack", "nd-2-2-3"]
DYCK = [
    *("--task", "bounded-dyck", "--bracket-types", "2", "--max-depth", "2", "--max-length", "10"),
    *("--train-size", "300", "--valid-size", "9", "--test-size", "5", "--distance-size", "5"),
    *("--distance-max-length", "70", "--depth-from", "11", "--depth-to", "11", "--depth-strings", "1"),
]


@dataclass(frozen=True)
class Trained:
    """A corpus, and a model that is trained on it."""

    corpus: Path
    checkpoint: Path

    def evaluate(self, folder: Path, *options: str) -> PushdownResult:
        """The result of the command."""
        arguments = [str(self.checkpoint), "--data", str(self.corpus), "--json", str(folder / "result.json"), "--cpu"]
        assert cli.main(["evaluate-pushdown", *arguments, "--bootstrap", "10", *options]) == 0
        return PushdownResult.read(folder / "result.json")


@pytest.fixture(scope="module")
def models(treebank: Path, pushdown_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Trained]:
    """Models with and without a tape, of brackets, and of trees."""
    corpus, models = tmp_path_factory.mktemp("brackets") / "dyck", {"trees": Trained(treebank.parent, pushdown_model)}
    assert cli.main(["prepare", "cfl", str(corpus), *DYCK]) == 0
    for name, model in (("dyck", TAPE), ("base", BASE)):
        models[name] = Trained(corpus, trained(corpus / "data-bin", model, tmp_path_factory))
    return models


@pytest.mark.parametrize("name", ["dyck", "base", "trees"])
def test_gold_parses_are_scored_as_in_training(models: dict[str, Trained], name: str, tmp_path: Path) -> None:
    model = models[name]
    result = model.evaluate(tmp_path, "--split", "valid", "--beam", "0")
    validated = run(
        "validate", model.corpus / "data-bin", *TASK, "--path", model.checkpoint, "--batch-size", 4, "--cpu"
    )
    assert torch.tensor(result.gold.perplexity.value).log2().item() == pytest.approx(
        last(validated, "nll_loss"), abs=6e-4
    )
    assert result.gold.attachments.value == pytest.approx(last(validated, "attach_accuracy"), abs=6e-5)
    assert result.own is None and result.parses is None and all(each.own is None for each in result.closings)


def next_symbols(hub: Any, string: list[str], attached: list[int] | None) -> list[str]:
    """The most probable closing bracket at each place, with a parse or with greedy decisions, one prefix at a time."""
    symbols = [index for index in range(len(hub.tgt_dict)) if hub.tgt_dict[index].endswith(")")]
    tokens = torch.tensor([[hub.tgt_dict.eos(), *map(hub.tgt_dict.index, string)]])
    chosen = []
    for length in range(1, len(string) + 1):
        tape = None if attached is None else stack_tape(torch.tensor([[0, *attached[: length - 1]]]))
        with torch.no_grad():
            logits, _ = hub.models[0](tokens[:, :length], tape=tape)
        chosen.append(hub.tgt_dict[symbols[int(logits[0, -1, symbols].argmax())]])
    return chosen


@pytest.mark.parametrize(("name", "split"), [("dyck", "test"), ("base", "test"), ("dyck", "depth")])
def test_closing_brackets(models: dict[str, Trained], name: str, split: str, tmp_path: Path) -> None:
    """Each closing bracket is predicted from what is before it, with the gold parse or greedy decisions of its own."""
    model = models[name]
    result = model.evaluate(tmp_path, "--split", split, "--beam", "1")
    hub = load(model.checkpoint, model.corpus / "data-bin")
    strings = [line.split() for line in (model.corpus / "text" / f"{split}.txt").read_text().splitlines()]
    right = dict.fromkeys(("gold", "own"), 0)
    for string in strings:
        for parses, attached in (("gold", list(attachments(string))), ("own", None)):
            chosen = next_symbols(hub, string, attached)
            right[parses] += sum(chosen[closing.place] == string[closing.place] for closing in closings(string))
    groups = {each.group: each for each in result.closings}
    number = sum(map(len, strings)) // 2
    assert groups["all"].brackets == number and groups["last of a string"].brackets == len(strings)
    assert groups["all"].gold.value == pytest.approx(right["gold"] / number)
    assert groups["all"].own is not None and groups["all"].own.value == pytest.approx(right["own"] / number)
    if name == "base":
        assert groups["all"].own.value == groups["all"].gold.value
    assert ("depth 11 to 20" in groups) == (split == "depth")
    assert sum(each.brackets for group, each in groups.items() if group.startswith("depth")) == number


def test_a_beam_has_more_of_the_probability(models: dict[str, Trained], tmp_path: Path) -> None:
    results = [models["trees"].evaluate(tmp_path, "--beam", str(beam)) for beam in (1, 2, 500)]
    perplexities = [result.own.perplexity.value for result in results if result.own is not None]
    assert perplexities == sorted(perplexities, reverse=True) and len(set(perplexities)) == 3
    gold = [result.gold.perplexity.value for result in results]
    assert gold == pytest.approx(gold[:1] * 3, rel=1e-6)


def test_the_tables(models: dict[str, Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = models["trees"].evaluate(tmp_path, "--beam", "4", "--csv", str(tmp_path / "sentences.csv"))
    printed = capsys.readouterr().out
    assert result.parses is not None and result.parses.f1_without_punctuation is not None
    assert result.closings == () and "closing brackets" not in printed
    assert re.search(rf"^\| F1 +\| +{100 * result.parses.f1.value:.2f} % \|", printed, re.MULTILINE), printed
    assert result.own is not None
    assert re.search(rf"^\| beam of 4 +\| +{result.own.perplexity.value:.2f} \|", printed, re.MULTILINE)
    assert printed.endswith(f"{result.signature}\n") and "|beam:4|" in result.signature
    rows = rows_of(tmp_path / "sentences.csv")
    tokens = sum(int(row["tokens"]) for row in rows)
    assert (len(rows), tokens) == (result.sentences, result.words)
    assert result.own is not None
    for prefix, scores in (("", result.gold), ("own_", result.own)):
        nats = sum(float(row[f"{prefix}nats"]) for row in rows)
        assert math.exp(nats / (tokens + len(rows))) == pytest.approx(scores.perplexity.value)
        attached = sum(int(row[f"{prefix}attached"]) for row in rows)
        assert attached / tokens == pytest.approx(scores.attachments.value)


def test_spans_are_over_words_where_tokens_are_pieces(models: dict[str, Trained], tmp_path: Path) -> None:
    """The same tokens, of which the first two are now pieces of one word: their span no longer counts."""
    model = models["trees"]
    corpus = shutil.copytree(model.corpus, tmp_path / "corpus")
    lines = [line.split() for line in (corpus / "text" / "test.txt").read_text().splitlines()]
    counts = "".join(f"{' '.join(['2', *['1'] * (len(line) - 2)] if line[1:] else '1')}\n" for line in lines)
    (corpus / "text" / "test.pieces-per-word").write_text(counts)
    (corpus / "text" / "test.tags").unlink()
    words, pieces = (Trained(data, model.checkpoint).evaluate(tmp_path) for data in (model.corpus, corpus))
    assert (words.words, pieces.words) == (sum(map(len, lines)), sum(max(len(line) - 1, 1) for line in lines))
    assert words.gold == pieces.gold
    assert words.parses is not None and pieces.parses is not None and words.parses.f1 != pieces.parses.f1


def test_best_runs(models: dict[str, Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No word depends on a parse, and perplexity is exact."""
    corpus = models["dyck"].corpus
    run("train", corpus / "data-bin", *RUNS, *TRAINING, "--save-dir", tmp_path / "lstm")
    model = Trained(corpus, tmp_path / "lstm" / "checkpoint_last.pt")
    csv = tmp_path / "sentences.csv"
    result = model.evaluate(tmp_path, "--split", "valid", "--best-runs", "--csv", str(csv))
    assert "| best runs |" in capsys.readouterr().out and "|beam:best-runs|" in result.signature
    assert result.gold is None and result.beam is None and result.own is not None and result.parses is not None
    validated = run("validate", corpus / "data-bin", *TASK, "--path", model.checkpoint, "--batch-size", 4, "--cpu")
    assert math.log2(result.own.perplexity.value) == pytest.approx(last(validated, "nll_loss"), abs=6e-4)
    assert all(each.gold is None and each.own is not None for each in result.closings)
    rows = rows_of(csv)
    assert result.parses.trees.value == sum(row["own_tree"] == "1" for row in rows) / len(rows)
    for options, problem in (
        ((model.checkpoint,), "the checkpoint holds no model that parses"),
        ((model.checkpoint, "--best-runs", "--beam", 1), "--beam has no effect with --best-runs"),
        ((models["dyck"].checkpoint, "--best-runs"), "the words of this model depend on its parses"),
        ((models["base"].checkpoint, "--best-runs"), "expected a model with one nondeterministic stack, got 0"),
    ):
        assert problem in error_of(capsys, *options, "--data", corpus)


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["evaluate-pushdown", *map(str, arguments), "--cpu"]) == 2
    return capsys.readouterr().err.splitlines()[-1].removeprefix("fairseq-stack: error: ")


def test_errors(models: dict[str, Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dyck = models["dyck"]
    checkpoint, corpus = dyck.checkpoint, shutil.copytree(dyck.corpus, tmp_path / "corpus")
    assert "--beam must be at least 0, got -1" in error_of(capsys, checkpoint, "--data", corpus, "--beam", -1)
    (corpus / "manifest.json").unlink()
    for string, problem in (
        (["(a"] * 100, "string 1 has 100 symbols and an end; the model accepts 100 tokens"),
        (["(a", "</s>"], "string 1: </s> ends a string"),
    ):
        (corpus / "text" / "test.txt").write_text(" ".join(string) + "\n")
        (corpus / "text" / "test.attach").write_text(" ".join(map(str, range(1, len(string) + 1))) + "\n")
        assert problem in error_of(capsys, checkpoint, "--data", corpus)


def test_a_model_that_diverged(models: dict[str, Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = torch.load(models["dyck"].checkpoint, weights_only=False)
    state["model"]["decoder.network.layers.0.feedforward_norm.weight"].fill_(3e38)
    torch.save(state, tmp_path / "model.pt")
    problem = error_of(capsys, tmp_path / "model.pt", "--data", models["dyck"].corpus)
    assert problem == "the model's probability of string 1 is 0 or not a number"
