"""fairseq's commands train, score and use language models: Transformers and LSTMs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairseq_stack.errors import UserError
from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import (
    BARE_LANGUAGE_MODEL,
    BARE_RECURRENT,
    DECODER,
    GENERATION,
    SENTENCES,
    TRAINING,
    run,
)

SCORING = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]
COMPACT = ["--task", "stack_language_modeling", "--compact-vocab"]
SHARED = "--share-decoder-input-output-embed"
# Each way in which symbols come in and out; tests/kinds/test_kinds.py trains with every stack.
MODELS: dict[str, list[Any]] = {
    "compact": [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4,nd-1-2-3", *COMPACT, "--output-bias"],
    "compact-shared": [*BARE_LANGUAGE_MODEL, "--stack-layers", DECODER, *COMPACT, SHARED],
    "lstm-hidden": [
        *(*BARE_RECURRENT, "--stack", "sup-8", "--push-hidden-state", "--decoder-embed-dim", 5),
        *("--decoder-dropout-in", 0.2, "--stack-depth-limit", 2),
    ],
    "lstm-symbols": [
        *(*BARE_RECURRENT, "--stack", "ns-2-2", "--normalize-transitions", "--no-states-in-reading"),
        *("--original-bottom", *COMPACT, "--output-bias", SHARED, "--dropout", 0.3),
    ],
    "rnn": [
        *(*BARE_RECURRENT, "--stack", "nd-2-2-3", "--controller", "rnn", "--decoder-layers", 3, "--dropout", 0.1),
        *("--learned-initial-state", "--reading-in-output", *COMPACT, SHARED),
    ],
}


@pytest.mark.parametrize("name", MODELS)
def test_train_and_evaluate(corpora: Corpora, tmp_path: Path, name: str) -> None:
    data, model = corpora.language_modeling, tmp_path / "checkpoint_last.pt"
    trained = run("train", data, *MODELS[name], *TRAINING, "--save-dir", tmp_path)
    assert trained.training_losses()[1] < trained.training_losses()[0]
    scored = run("eval-lm", data, "--path", model, *SCORING, "--batch-size", 4)
    assert scored.validation_losses() == pytest.approx(trained.validation_losses()[-1:], abs=0.0006)
    sentences = (corpora.text / "valid.src").read_text().splitlines()
    num_tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    assert any(f"Evaluated {num_tokens} tokens" in line for line in scored.log)


def test_incentives(corpora: Corpora, tmp_path: Path) -> None:
    """Without weights, the loss is the cross-entropy; each weight changes it."""
    model = [*BARE_RECURRENT, "--stack", "nd-2-2-3", "--reading-in-output", *TRAINING, "--max-epoch", 1]
    names = "entropy-weight", "height-weight", "reading-weight", "transition-noise"
    options: list[list[Any]] = [[], *([f"--{name}", 0.9] for name in names)]
    criteria = [["cross_entropy"], *(["stack_incentives", *of_criterion] for of_criterion in options)]
    losses = []
    for number, criterion in enumerate(criteria):
        folder = tmp_path / str(number)
        trained = run("train", corpora.language_modeling, *model, "--criterion", *criterion, "--save-dir", folder)
        losses += trained.training_losses()
    assert losses[1] == pytest.approx(losses[0], abs=0.0011), losses
    assert len(set(losses[1:])) == len(options), losses
    blocks = ["--sample-break-mode", "none", "--tokens-per-sample", 16, "--criterion", "stack_incentives"]
    with pytest.raises(UserError, match=r"^--criterion stack_incentives needs language modeling of single sentences"):
        run("train", corpora.language_modeling, *model, *blocks, "--save-dir", tmp_path / "blocks")


def test_generate_with_prefixes(corpora: Corpora, recurrent_model: Path) -> None:
    options = ["--task", "language_modeling", *SENTENCES, "--path", recurrent_model, *GENERATION, "--prefix-size", 2]
    continued = run("generate", corpora.language_modeling, *options).hypotheses()
    sentences = (corpora.text / "test.src").read_text().splitlines()
    assert sorted(continued) == list(range(SPLITS["test"]))
    assert all(continued[number].split()[:2] == sentence.split()[:2] for number, sentence in enumerate(sentences))
