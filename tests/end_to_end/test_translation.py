"""fairseq's commands train, validate and use translation models."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import (
    BARE_TRANSLATION,
    GENERATION,
    SMOOTHED_COMPACT,
    TRAINING,
    TRANSLATION,
    run,
)


def test_train_validate_generate(corpora: Corpora, tmp_path: Path) -> None:
    """A model without attention, with a compact vocabulary; tests/kinds/test_kinds.py trains all kinds of layers."""
    task, data, model = ["--task", "stack_translation"], corpora.translation, tmp_path / "checkpoint_last.pt"
    layers = ["--stack-encoder-layers", "sup-4", "--stack-decoder-layers", "2xnd-1-2-3"]
    options = [*BARE_TRANSLATION, *task, *layers, *SMOOTHED_COMPACT, "--share-all-embeddings", *TRAINING]
    trained = run("train", data, *options, "--save-dir", tmp_path)
    assert len(trained.training_losses()) == len(trained.validation_losses()) == 2
    assert all(map(math.isfinite, trained.training_losses() + trained.validation_losses()))
    assert trained.training_losses()[1] < trained.training_losses()[0]

    validated = run("validate", data, *task, "--path", model, "--batch-size", 4, "--cpu", "--num-workers", 0)
    assert validated.validation_losses() == pytest.approx(trained.validation_losses()[-1:], abs=0.0011)

    generated = run("generate", data, *task, "--path", model, *GENERATION)
    assert sorted(generated.hypotheses()) == list(range(SPLITS["test"]))
    assert any(f"Translated {SPLITS['test']} sentences" in line for line in generated.log)


FLAGS: dict[str, list[Any]] = {
    "fp16": ["--memory-efficient-fp16", *SMOOTHED_COMPACT, "--share-all-embeddings"],
    "layer-drop": ["--encoder-layerdrop", 0.5, "--decoder-layerdrop", 0.5],
}


@pytest.mark.parametrize("name", FLAGS)
def test_other_ways_of_training(corpora: Corpora, tmp_path: Path, name: str) -> None:
    trained = run("train", corpora.translation, *TRANSLATION, *TRAINING, *FLAGS[name], "--save-dir", tmp_path)
    assert all(map(math.isfinite, trained.training_losses() + trained.validation_losses()))
    assert trained.training_losses()[1] < trained.training_losses()[0] or name == "layer-drop"


def test_recomputed_activations_change_no_loss(corpora: Corpora, tmp_path: Path) -> None:
    plain, recomputing = (
        run("train", corpora.translation, *TRANSLATION, *TRAINING, *flags, "--save-dir", tmp_path / name)
        for name, flags in (("plain", []), ("recomputing", ["--checkpoint-activations", "--offload-activations"]))
    )
    assert recomputing.training_losses() == pytest.approx(plain.training_losses(), abs=0.0011)
    assert recomputing.validation_losses() == pytest.approx(plain.validation_losses(), abs=0.0011)
