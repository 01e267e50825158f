"""The line with a score says what the score leaves out, and data that cannot be scored is refused."""

from __future__ import annotations

import logging
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_stack import cli
from fairseq_stack.errors import UserError
from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import GENERATION, LANGUAGE_MODEL, TRAINING, Output, run
from tests.evaluation.test_blimp import line

DATA = ["--num-workers", 0, "--cpu", "--batch-size", 2]
EOS_MODE = ["--sample-break-mode", "eos"]
LIMIT = 4
SKIPPING = "--skip-invalid-size-inputs-valid-test"


def score(corpora: Corpora, model: Path, *options: Any) -> str:
    """The line of fairseq-eval-lm with the perplexity of the test set."""
    scored = run("eval-lm", corpora.language_modeling, "--path", model, *DATA, *options)
    return last_line(scored, "Loss (base 2): ")


def last_line(output: Output, beginning: str) -> str:
    return [line for line in [*output.log, *output.printed.splitlines()] if beginning in line][-1]


def lengths(corpora: Corpora, split: str) -> list[int]:
    """The number of tokens of each sentence, the end of sentence included."""
    return [len(line.split()) + 1 for line in (corpora.text / f"{split}.src").read_text().splitlines()]


def count_long(corpora: Corpora, split: str) -> str:
    sizes = lengths(corpora, split)
    return f"{sum(size > LIMIT for size in sizes)} of {len(sizes)}"


@pytest.fixture(scope="module")
def short_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Output]:
    """A language model that takes four tokens at most, and what its training said."""
    folder = tmp_path_factory.mktemp("short_model")
    limits = ["--tokens-per-sample", LIMIT, SKIPPING]
    trained = run("train", corpora.language_modeling, *LANGUAGE_MODEL, *TRAINING, *limits, "--save-dir", folder)
    return folder / "checkpoint_last.pt", trained


def test_perplexity(corpora: Corpora, short_model: tuple[Path, Output]) -> None:
    model, _ = short_model
    sizes = lengths(corpora, "test")
    scored = sum(size for size in sizes if size <= LIMIT)
    line = score(corpora, model, *EOS_MODE)
    numbers = f"scored {scored} of {sum(sizes)} tokens, left out {count_long(corpora, 'test')} sentences of test"
    assert line.endswith(f"; {numbers} (more than 4 tokens)")
    longer = score(corpora, model, *EOS_MODE, "--model-overrides", {"max_target_positions": 100})
    assert re.fullmatch(r"Loss \(base 2\): \d+\.\d+, Perplexity: \d+\.\d+", longer), "nothing is left out"


def test_validation(corpora: Corpora, short_model: tuple[Path, Output]) -> None:
    model, trained = short_model
    count = count_long(corpora, "valid").split()[0]
    assert f" left_out {count} " in f"{last_line(trained, 'valid on ')} ".replace(" |", "")
    assert "left_out" not in last_line(trained, "end of epoch")
    arguments = [corpora.language_modeling, "--task", "language_modeling", "--path", model, *DATA]
    validated = run("validate", *arguments, SKIPPING)
    assert f" left_out {count} " in f"{last_line(validated, 'valid on ')} ".replace(" |", "")
    with pytest.raises(UserError, match=f"too long for the model: {count_long(corpora, 'valid')} sentences of valid"):
        run("validate", *arguments)


def test_translations(corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
    use = [corpora.translation, "--path", translation_model, *GENERATION, "--max-source-positions", LIMIT, SKIPPING]
    left_out = f"; left out {count_long(corpora, 'test')} sentences of test (more than (4, 1024) tokens)"
    translated = run("generate", *use, "--results-path", tmp_path)
    assert last_line(translated, "Translated ").endswith(left_out)
    (score,) = (line for line in (tmp_path / "generate-test.txt").read_text().splitlines() if "Generate" in line)
    assert score.endswith(left_out)
    complete = run("generate", corpora.translation, "--path", translation_model, *GENERATION)
    assert last_line(complete, "Generate test with beam=4: ").endswith(")")
    assert "left out" not in complete.printed


def test_shards(corpora: Corpora, language_model: Path) -> None:
    shards = ["--num-shards", 2, "--shard-id", 1]
    line = score(corpora, language_model, *EOS_MODE, *shards)
    scored = re.search(r"; scored (\d+) of (\d+) tokens, shard 1 of 2$", line)
    assert scored
    assert int(scored[2]) == sum(lengths(corpora, "test")) > int(scored[1]) > 0
    with pytest.raises(UserError, match="--shard-id 90 of --num-shards 99: there are too few batches"):
        score(corpora, language_model, *EOS_MODE, "--num-shards", 99, "--shard-id", 90)


def test_shortened_sentences(corpora: Corpora, language_model: Path) -> None:
    line = score(corpora, language_model, *EOS_MODE, "--shorten-method", "truncate", "--tokens-per-sample", LIMIT)
    scored = sum(min(size, LIMIT) for size in lengths(corpora, "test"))
    assert line.endswith(f"; scored {scored} of {sum(lengths(corpora, 'test'))} tokens, --shorten-method truncate")


def test_nothing_left(corpora: Corpora, language_model: Path) -> None:
    """fairseq gives a perplexity of 1 for it."""
    with pytest.raises(UserError, match=r"no data: left out 11 of 11 sentences of test \(more than 1 tokens\)"):
        score(corpora, language_model, *EOS_MODE, "--model-overrides", {"max_target_positions": 1})


def test_blocks_and_a_model_of_sentences(corpora: Corpora, language_model: Path) -> None:
    mode = ["--sample-break-mode", "complete", "--tokens-per-sample", 20]
    with pytest.raises(UserError, match=r"expected the same here, got --sample-break-mode complete"):
        score(corpora, language_model, *mode)
    line = score(corpora, language_model, *mode, "--model-overrides", {"sample_break_mode": "complete"})
    assert math.isfinite(float(line.split()[-1]))


def test_context_and_bos_of_another_training(corpora: Corpora, language_model: Path) -> None:
    with pytest.raises(UserError, match="--context-window 3 puts words of other sentences before each sentence"):
        score(corpora, language_model, *EOS_MODE, "--context-window", 3)
    with pytest.raises(UserError, match="--add-bos-token: the model was trained without it: leave it out"):
        score(corpora, language_model, *EOS_MODE, "--add-bos-token")


def test_ends_that_training_left_out(corpora: Corpora, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = ["--task", "stack_language_modeling", "--without-eos"]
    run("train", corpora.language_modeling, *LANGUAGE_MODEL, *task, *TRAINING, "--max-epoch", 1, "--save-dir", tmp_path)
    model = tmp_path / "checkpoint_last.pt"
    with pytest.raises(UserError, match="trained without the ends of sentences: expected --task stack_language_mod"):
        score(corpora, model, *EOS_MODE)
    assert "without the ends of sentences" in score(corpora, model, *EOS_MODE, *task)
    text = tmp_path / "text"
    text.write_text("a b\n", encoding="utf-8")
    surprisals = ["surprisal", str(model), str(text)]
    assert cli.main(surprisals) == 0
    capsys.readouterr()
    assert cli.main([*surprisals, "--end"]) == 2
    assert (
        "the model was trained with --without-eos, so it does not predict ends; leave out --end"
        in capsys.readouterr().err
    )
    (tmp_path / "pairs.jsonl").write_text(line("a b", bad="b a"), encoding="utf-8")
    assert cli.main(["evaluate-blimp", str(model), "--blimp", str(tmp_path)]) == 2
    assert "it does not predict ends; add --without-end" in capsys.readouterr().err


def test_models_of_fairseq_score_blocks(corpora: Corpora, stock_model: Path) -> None:
    assert "left out" not in score(corpora, stock_model, "--tokens-per-sample", 20, "--context-window", 5)
    with pytest.raises(UserError, match="--context-window: expected a number below --tokens-per-sample"):
        score(corpora, stock_model, "--tokens-per-sample", 20, "--context-window", 20)


@pytest.fixture(scope="module")
def model_without_a_symbol(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model that gives probability zero to a letter of the data, although its parameters are finite."""
    folder = tmp_path_factory.mktemp("model_without_a_symbol")
    options = [*LANGUAGE_MODEL, "--output-bias", *TRAINING, "--max-update", 1, "--save-dir", folder]
    run("train", corpora.language_modeling, *options)
    checkpoint = torch.load(folder / "checkpoint_last.pt")
    (bias,) = (value for name, value in checkpoint["model"].items() if re.search(r"output_projection.*bias", name))
    bias.fill_(1e33)
    bias[4] = torch.finfo(bias.dtype).min
    torch.save(checkpoint, folder / "without.pt")
    return folder / "without.pt"


def test_probability_zero(corpora: Corpora, model_without_a_symbol: Path, caplog: pytest.LogCaptureFixture) -> None:
    """fairseq leaves such tokens out of the perplexity; whatever its logger says."""
    caplog.set_level(logging.WARNING, logger="fairseq_cli.eval_lm")
    with pytest.raises(UserError, match=r"gives probability zero to '[abcd]'"):
        run("eval-lm", corpora.language_modeling, "--path", model_without_a_symbol, *DATA, *EOS_MODE)


def test_references_of_probability_zero(corpora: Corpora, model_without_a_symbol: Path) -> None:
    options = ["--task", "language_modeling", *EOS_MODE, "--tokens-per-sample", 50, "--score-reference"]
    scored = run("generate", corpora.language_modeling, "--path", model_without_a_symbol, *options, *GENERATION)
    scores = [float(line.split("\t")[1]) for line in scored.printed.splitlines() if line.startswith("H-")]
    assert len(scores) == len(lengths(corpora, "test"))
    assert -math.inf in scores


def test_interactive(corpora: Corpora, translation_model: Path) -> None:
    options = ["--path", translation_model, *GENERATION, SKIPPING, "--batch-size", 1]
    translated = run("interactive", corpora.translation, *options, stdin=f"a b\n{'a ' * 1500}\nc\n")
    assert len(translated.hypotheses()) == 2
    assert "left out 1 of 1 sentences (more than (1024, 1024) tokens)" in last_line(translated, "left out")
