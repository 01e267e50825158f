"""fairseq-stack evaluate-cfl: both families of models, against fairseq-eval-lm and against exact probabilities."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from fairseq_stack.evaluation.cfl_result import CFLResult
from fairseq_stack.hub.interface import LanguageModelHub
from fairseq_stack.hub.strings import draw_strings, predictions
from fairseq_stack_preprocess.cfl.language_corpus import Options, prepare
from fairseq_stack_preprocess.cfl.languages import Word
from tests.end_to_end.conftest import trained
from tests.end_to_end.fairseq_commands import (
    BARE_LANGUAGE_MODEL,
    BARE_RECURRENT,
    STOCK_LANGUAGE_MODEL,
    TRAINING,
    hub_of,
    rows_of,
    run,
)
from tests.preprocess.cfl.test_pcfg import assert_chi_square

END = "</s>"

MODELS = {
    "transformer": [*BARE_LANGUAGE_MODEL, "--stack-layers", "nd-2-2-3,sdpa,sup-4", "--compact-vocab"],
    "lstm": [*BARE_RECURRENT, "--stack", "sup-3+nd-2-2-3", "--compact-vocab", "--output-bias"],
    "fairseq": STOCK_LANGUAGE_MODEL,
}
with_one_model = pytest.mark.parametrize("checkpoint", ["lstm"], indirect=True)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cfl") / "corpus"
    lengths: dict[str, Any] = {"min_length": 3, "max_length": 7, "test_min_length": 3, "test_max_length": 9}
    prepare(Options("marked-reversal", train_size=40, valid_size=5, test_per_length=4, batch_size=5, **lengths), folder)
    return folder


@pytest.fixture(scope="module", params=MODELS)
def checkpoint(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(corpus / "data-bin", MODELS[request.param], tmp_path_factory)


def evaluate(*arguments: Any, code: int = 0) -> None:
    assert cli.main(["evaluate-cfl", *map(str, arguments)]) == code


def result_of(path: Path, *arguments: Any) -> CFLResult:
    evaluate(*arguments, "--bootstrap", 20, "--json", path)
    return CFLResult.read(path)


def test_agrees_with_eval_lm(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    result = result_of(tmp_path / "result.json", checkpoint, "--data", corpus)
    scoring = ["--gen-subset", "test", "--sample-break-mode", "eos", "--batch-size", 3, "--num-workers", 0, "--cpu"]
    output = run("eval-lm", corpus / "data-bin", "--path", checkpoint, *scoring, "--output-word-probs")
    of_tokens = [float(number) for line in output.log for number in re.findall(r" \[(-\d+\.\d+)\]", line)]
    (perplexity,) = [line.partition("Perplexity: ")[2] for line in output.log if "Perplexity: " in line]
    assert math.exp(result.overall.cross_entropy) == pytest.approx(float(perplexity), abs=0.0051)
    assert result.overall.tokens == len(of_tokens)
    losses = -math.fsum(of_tokens)
    assert result.overall.cross_entropy == pytest.approx(losses / result.overall.tokens, abs=2e-6)
    bounds = [float(line) for line in (corpus / "text/test.nll").read_text().splitlines()]
    difference = (losses - math.fsum(bounds)) / result.overall.tokens
    assert result.overall.difference.value == pytest.approx(difference, abs=2e-6)


@with_one_model
def test_table_and_json(corpus: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--samples", 30, "--show-samples", 2, "--csv", tmp_path / "lengths.csv"]
    result = result_of(tmp_path / "result.json", checkpoint, "--data", corpus, *options)
    printed = capsys.readouterr().out.splitlines()
    assert (result.language, result.split, result.eos) == ("marked-reversal", "test", True)
    assert [row.length for row in result.by_length] == [3, 5, 7, 9]
    assert all(row.strings == 4 and row.tokens == 4 * (row.length + 1) for row in result.by_length)
    assert result.samples is not None
    assert (result.samples.strings, result.samples.max_length) == (30, 11)
    assert 0 <= result.samples.in_language <= 30 - result.samples.unfinished
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed if line.startswith("|")]
    assert [row[0] for row in cells] == ["length", "------", "3", "5", "7", "9", "all"]
    overall = result.overall
    numbers = (overall.cross_entropy, overall.bound, overall.difference.value)
    assert cells[-1][1:5] == ["16", *(f"{number:.4f}" for number in numbers)]
    assert f"samples: {result.samples.in_language} of 30 in the language" in "\n".join(printed)
    assert sum(line.startswith("  ") for line in printed) == 2
    rows = rows_of(tmp_path / "lengths.csv")
    assert [(int(row["length"]), float(row["difference"])) for row in rows] == [
        (scores.length, scores.difference.value) for scores in result.by_length
    ]
    assert printed[-1] == result.signature
    assert "|eos:yes|bootstrap:20|confidence:0.95|samples:30|sample_length:11|seed:0|" in result.signature


@with_one_model
def test_without_ends_and_samples(corpus: Path, checkpoint: Path, tmp_path: Path) -> None:
    options = ["--without-eos", "--samples", 0, "--split", "valid"]
    result = result_of(tmp_path / "result.json", checkpoint, "--data", corpus / "data-bin", *options)
    assert (result.eos, result.samples, result.split) == (False, None, "valid")
    assert all(row.tokens == row.strings * row.length for row in result.by_length)
    scoring = ["--task", "stack_language_modeling", "--without-eos", "--sample-break-mode", "eos", "--batch-size", 3]
    output = run("eval-lm", corpus / "data-bin", "--path", checkpoint, "--gen-subset", "valid", *scoring, "--cpu")
    (said,) = [line.partition("Perplexity: ")[2] for line in output.log if "Perplexity: " in line]
    perplexity, _, remark = said.partition("; ")
    assert math.exp(result.overall.cross_entropy) == pytest.approx(float(perplexity), abs=0.0051)
    assert remark == "without the ends of sentences"


@with_one_model
def test_ends_that_were_not_learned(
    corpus: Path, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = torch.load(checkpoint, weights_only=False)
    saved["cfg"]["task"] |= {"_name": "stack_language_modeling", "without_eos": True}
    torch.save(saved, tmp_path / "model.pt")
    arguments = [tmp_path / "model.pt", "--data", corpus, "--bootstrap", 2, "--samples"]
    evaluate(*arguments, 0, "--without-eos")
    for wrong in ([0], [5, "--without-eos"]):
        evaluate(*arguments, *wrong, code=2)
        assert "it does not predict ends; add --without-eos --samples 0" in capsys.readouterr().err


@pytest.fixture
def hub(corpus: Path, checkpoint: Path) -> LanguageModelHub:
    return hub_of(checkpoint, corpus / "data-bin")


def test_predictions_are_the_scores_of_the_hub(hub: LanguageModelHub) -> None:
    strings = [("0",), ("0", "#", "1"), (), ("#", "#"), ("1", "0", "#", "0", "1")]
    predicted = dict(predictions(hub, strings, batch_size=2, max_tokens=None))
    for number, string in enumerate(strings):
        expected = hub.score(" ".join(string))["positional_scores"]
        np.testing.assert_allclose(predicted[number].log_probabilities, expected, atol=1e-6)
        for place, symbol in enumerate((*string, "</s>")):
            prefix = string[:place]
            rivals = [(*prefix, other) for other in ("0", "1", "#")]
            values = [float(hub.score(" ".join(rival))["positional_scores"][place]) for rival in rivals]
            values.append(float(hub.score(" ".join(prefix))["positional_scores"][place]))
            best = [*("0", "1", "#"), "</s>"][int(np.argmax(values))]
            assert predicted[number].is_best[place] == (best == symbol)


def test_samples_follow_the_probabilities_of_the_model(hub: LanguageModelHub) -> None:
    longest, number = 2, 4000
    symbols = [symbol for symbol in hub.tgt_dict.symbols if symbol not in ("</s>", "<pad>")]
    possible = symbols if hub.cfg.model._name == "transformer_lm" else ["0", "1", "#"]
    strings = [string for n in range(longest + 1) for string in itertools.product(possible, repeat=n)]
    predicted = dict(predictions(hub, strings, batch_size=None, max_tokens=None))
    probabilities: dict[Word, float] = {}
    for i, string in enumerate(strings):
        log_probabilities = predicted[i].log_probabilities
        probabilities[*string, END] = math.exp(log_probabilities.sum())
        if len(string) == longest:
            probabilities[string] = math.exp(log_probabilities[:-1].sum()) - probabilities[*string, END]
    samples = draw_strings(hub, number, max_length=longest, seed=1, batch_size=1500)
    counts = Counter((*sample.symbols, END) if sample.is_finished else sample.symbols for sample in samples)
    total = sum(probabilities.values())
    assert total == pytest.approx(1, abs=0.02)  # fairseq's own model gives padding a little, which is never drawn
    assert_chi_square(counts, {outcome: p / total for outcome, p in probabilities.items()})


@with_one_model
def test_mistakes(
    corpus: Path, checkpoint: Path, translation_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long, dyck, copy = (tmp_path / name for name in ("long", "dyck", "copy"))
    sizes: dict[str, Any] = {"train_size": 9, "valid_size": 2, "test_per_length": 1}
    prepare(Options("marked-reversal", **sizes, batch_size=3, test_min_length=99, test_max_length=99), long)
    prepare(Options("marked-copy", **sizes, batch_size=3), copy)
    prepare(Options("dyck", **sizes, batch_size=3, binarise=False), dyck)  # without a dictionary: the model's is used
    model = [*BARE_LANGUAGE_MODEL, "--add-bos-token", "--max-epoch", 1]
    run("train", corpus / "data-bin", *model, *TRAINING, "--save-dir", tmp_path / "bos")
    for arguments, message in (
        (
            (checkpoint, "--data", long, "--samples", 0),
            "string 1 has 99 symbols and an end; the model accepts 50 tokens",
        ),
        ((checkpoint, "--data", corpus, "--sample-length", 50), "samples of 50 symbols and an end are too long"),
        ((checkpoint, "--data", copy), 'expected task "marked-reversal", on which the model was trained'),
        ((translation_model, "--data", dyck), "holds no language model, but one that maps sources to targets"),
        ((tmp_path / "bos", "--data", corpus), "the model was trained with --add-bos-token"),
    ):
        capsys.readouterr()
        evaluate(*arguments, code=2)
        printed = capsys.readouterr().err
        assert message in printed.splitlines()[-1] and "test strings: " not in printed  # before any is scored
    evaluate(checkpoint, "--data", corpus, "--sample-length", 50, "--samples", 0)
    assert "test strings: " in capsys.readouterr().err


@with_one_model
def test_probabilities_that_are_not_numbers(hub: LanguageModelHub) -> None:
    for parameter in hub.parameters():
        parameter.data.fill_(math.nan)
    with pytest.raises(UserError, match="the model's probability of a symbol of string 1 is 0 or not a number"):
        list(predictions(hub, [("0",)], batch_size=None, max_tokens=None))
    with pytest.raises(UserError, match="the model computes a probability that is not a number"):
        draw_strings(hub, 1, max_length=3, seed=0, batch_size=1)
