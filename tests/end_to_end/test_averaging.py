"""Averages of parameters: fairseq's moving average, and fairseq-stack average."""

from __future__ import annotations

import math
from pathlib import Path

import torch

from fairseq_stack import cli
from tests.end_to_end.conftest import SPLITS, Corpora
from tests.end_to_end.fairseq_commands import GENERATION, TRAINING, TRANSLATION, run


def test_average_of_checkpoints_of_a_training(corpora: Corpora, tmp_path: Path) -> None:
    """The average translates, is validated and is a member of an ensemble; further training begins with it."""
    training = [option for option in TRAINING if option != "--no-epoch-checkpoints"]
    run("train", corpora.translation, *TRANSLATION, *training, "--save-dir", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    output = tmp_path / "elsewhere" / "average.pt"
    assert cli.main(["average", str(tmp_path), "--num-epoch-checkpoints", "2", "--output", str(output)]) == 0
    assert {path.name for path in output.parent.iterdir()} == {"average.pt", "dict.src.txt", "dict.tgt.txt"}
    first, second, mean = (
        torch.load(path)["model"] for path in (tmp_path / "checkpoint1.pt", tmp_path / "checkpoint2.pt", output)
    )
    weight = "decoder.layers.0.self_attn.attention.actions.weight"
    assert torch.equal(mean[weight], ((first[weight].double() + second[weight].double()) / 2).float())

    data = [corpora.translation, "--path"]
    alone = run("generate", *data, output, *GENERATION).hypotheses()
    assert sorted(alone) == list(range(SPLITS["test"]))
    assert run("generate", *data, f"{output}:{output}", *GENERATION).hypotheses() == alone
    assert run("generate", *data, f"{output}:{tmp_path / 'checkpoint2.pt'}", *GENERATION).hypotheses()
    validation = ["--task", "translation", "--batch-size", 4, "--num-workers", 0, "--cpu"]
    assert math.isfinite(run("validate", *data, output, *validation).validation_losses()[0])
    more = ["--finetune-from-model", output, "--max-update", 1, "--save-dir", tmp_path / "more"]
    run("train", corpora.translation, *TRANSLATION, *TRAINING, *more)
