"""Averages of checkpoints, of fairseq's making and of anybody's, are checkpoints that load."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import GENERATION, TRAINING, TRANSLATION, run


def test_moving_average(corpora: Corpora, tmp_path: Path) -> None:
    moving = ["--store-ema", "--ema-decay", 0.9]
    run("train", corpora.translation, *TRANSLATION, *TRAINING, *moving, "--save-dir", tmp_path)
    checkpoint = torch.load(tmp_path / "checkpoint_last.pt")
    average, model = checkpoint["extra_state"]["ema"], checkpoint["model"]
    weight = "decoder.layers.0.self_attn.attention.actions.weight"
    assert not torch.equal(average[weight], model[weight])
    # fairseq keeps no average of what has "version" in its name; a program that loads the average adds it.
    kept = {name: value for name, value in model.items() if name not in average}
    assert all("version" in name for name in kept)


def test_average_of_checkpoints(corpora: Corpora, translation_model: Path, tmp_path: Path) -> None:
    checkpoint = torch.load(translation_model)
    for name, value in checkpoint["model"].items():
        total = sum(value for _ in range(5))  # of five checkpoints, as fairseq's script adds them up
        checkpoint["model"][name] = total / 5 if value.is_floating_point() else total // 5
    torch.save(checkpoint, tmp_path / "average.pt")
    generated = run("generate", corpora.translation, "--path", tmp_path / "average.pt", *GENERATION)
    assert generated.hypotheses()
