"""fairseq's commands train, score and use language models."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import (
    BARE_LANGUAGE_MODEL,
    DECODER,
    GENERATION,
    SENTENCES,
    TRAINING,
    run,
)

SCORING = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]
PREFIXES = {0: "a b", 1: "c", 2: "d d a"}


@pytest.mark.parametrize(
    ("layers", "vocabulary"),
    [
        ("2xsdpa", []),
        ("sup-4,nd-1-2-3", ["--compact-vocab", "--output-bias"]),
        (DECODER, ["--compact-vocab", "--share-decoder-input-output-embed"]),
    ],
    ids=["stock", "compact", "compact-shared"],
)
def test_train_and_evaluate(corpora: Corpora, tmp_path: Path, layers: str, vocabulary: list[str]) -> None:
    task = "stack_language_modeling" if vocabulary else "language_modeling"
    data, model = corpora.language_modeling, tmp_path / "checkpoint_last.pt"
    flags = ["--stack-layers", layers, "--task", task, *vocabulary]
    trained = run("train", data, *BARE_LANGUAGE_MODEL, *flags, *TRAINING, "--save-dir", tmp_path)
    assert all(map(math.isfinite, trained.training_losses() + trained.validation_losses()))

    scored = run("eval-lm", data, "--path", model, *SCORING, "--batch-size", 4)
    assert scored.validation_losses() == pytest.approx(trained.validation_losses()[-1:], abs=0.0006)
    sentences = (corpora.text / "valid.src").read_text().splitlines()
    num_tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    assert any(f"Evaluated {num_tokens} tokens" in line for line in scored.log)


def test_validate_agrees_with_eval_lm(corpora: Corpora, language_model: Path) -> None:
    data = corpora.language_modeling
    batches = ["--batch-size", 4, "--num-workers", 0, "--cpu"]
    validated = run("validate", data, "--task", "language_modeling", "--path", language_model, *batches)
    scored = run("eval-lm", data, "--path", language_model, *SCORING)
    assert validated.validation_losses() == pytest.approx(scored.validation_losses(), abs=0.0006)


def test_interactive_continues_prefixes(corpora: Corpora, language_model: Path) -> None:
    options = ["--task", "stack_language_modeling", "--path", language_model, *GENERATION, "--batch-size", 1]
    answered = run("interactive", corpora.language_modeling, *options, stdin="\n".join(PREFIXES.values()) + "\n")
    continued = answered.hypotheses()
    assert continued.keys() == PREFIXES.keys()
    assert all(continued[number].startswith(prefix) for number, prefix in PREFIXES.items())


def test_generate_with_prefixes(corpora: Corpora, language_model: Path) -> None:
    options = ["--task", "language_modeling", *SENTENCES, "--path", language_model, *GENERATION, "--prefix-size", 2]
    continued = run("generate", corpora.language_modeling, *options).hypotheses()
    sentences = (corpora.text / "test.src").read_text().splitlines()
    assert sorted(continued) == list(range(SPLITS["test"]))
    assert all(continued[number].split()[:2] == sentence.split()[:2] for number, sentence in enumerate(sentences))


def test_pruning_keeps_the_layers_named(corpora: Corpora, language_model: Path) -> None:
    data = corpora.language_modeling
    whole = run("eval-lm", data, "--path", language_model, *SCORING)
    options = ["--path", language_model, *SCORING, "--model-overrides"]
    same = run("eval-lm", data, *options, {"decoder_layers_to_keep": "0,1,2"})
    pruned = run("eval-lm", data, *options, {"decoder_layers_to_keep": "0,2"})
    assert same.validation_losses() == whole.validation_losses() != pruned.validation_losses()
