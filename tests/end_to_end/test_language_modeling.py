"""fairseq's commands train, score and use language models."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import (
    BARE_LANGUAGE_MODEL,
    DECODER,
    TRAINING,
    run,
)

SCORING = ["--sample-break-mode", "eos", "--gen-subset", "valid", "--num-workers", 0, "--cpu"]


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
