"""fairseq's commands train, score, resume and use language models that are LSTMs with stacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import BARE_RECURRENT, GENERATION, SENTENCES, TRAINING, run

RECURRENT = [*BARE_RECURRENT, "--stack", "sup-3+nd-2-2-3+ns-1-2", "--dropout", 0.2, "--recurrent-dropout", 0.1]
SCORING = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]
COMPACT = ["--compact-vocab", "--output-bias"]
# Rows of the table of models, and each way in which symbols come in and out.
MODELS: dict[str, list[Any]] = {
    "lstm": [],
    "sup": ["--stack", "sup-3", "--stack-depth-limit", 2, *COMPACT],
    "hidden": ["--stack", "sup-8", "--push-hidden-state", "--decoder-embed-dim", 5, "--decoder-dropout-in", 0.2],
    "strat": ["--stack", "strat-3", "--stack-init", "uniform"],
    "ns-2020": ["--stack", "ns-2-2", "--normalize-transitions", "--no-states-in-reading", "--original-bottom"],
    "rns": ["--stack", "ns-2-2", *COMPACT, "--share-decoder-input-output-embed", "--dropout", 0.3],
    "vrns": ["--stack", "nd-2-2-3", "--bottom-vector", "one", "--stack-init", "paper", "--recurrent-dropout", 0.2],
}


@pytest.fixture(scope="module")
def recurrent_model(corpora: Corpora, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a language model with several kinds of stacks."""
    folder = tmp_path_factory.mktemp("recurrent_model")
    run("train", corpora.language_modeling, *RECURRENT, *TRAINING, "--save-dir", folder)
    return folder / "checkpoint_last.pt"


@pytest.mark.parametrize("name", MODELS)
def test_train_and_evaluate(corpora: Corpora, tmp_path: Path, name: str) -> None:
    data, model = corpora.language_modeling, tmp_path / "checkpoint_last.pt"
    trained = run("train", data, *BARE_RECURRENT, *MODELS[name], *TRAINING, "--save-dir", tmp_path)
    assert trained.training_losses()[1] < trained.training_losses()[0]

    scored = run("eval-lm", data, "--path", model, *SCORING, "--batch-size", 4)
    assert scored.validation_losses() == pytest.approx(trained.validation_losses()[-1:], abs=0.0006)
    sentences = (corpora.text / "valid.src").read_text().splitlines()
    num_tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    assert any(f"Evaluated {num_tokens} tokens" in line for line in scored.log)


@pytest.mark.parametrize("task", [
    ["language_modeling"], ["stack_language_modeling", "--beam-search", "length-normalized"]
], ids=["fairseq", "length-normalized"])  # fmt: skip
def test_generate_with_prefixes(corpora: Corpora, recurrent_model: Path, task: list[str]) -> None:
    options = ["--task", *task, *SENTENCES, "--path", recurrent_model, *GENERATION, "--prefix-size", 2]
    continued = run("generate", corpora.language_modeling, *options).hypotheses()
    sentences = (corpora.text / "test.src").read_text().splitlines()
    assert sorted(continued) == list(range(SPLITS["test"]))
    assert all(continued[number].split()[:2] == sentence.split()[:2] for number, sentence in enumerate(sentences))
