"""A finished training run that is started again changes no byte, and says how to continue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, TRAINING, run
from tests.end_to_end.test_resuming import UPDATES_AN_EPOCH, assert_same, state

MODEL = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4"]
SHRINKING = ["--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 0, "--lr-shrink", 0.5, "--lr-threshold", 0.9]
# The end, the option that is raised (or lowered) to go on, and the number of updates after the first training.
ENDS = {
    "within-epoch": (["--max-update", 4], "raise --max-update", 4),
    "learning-rate": ([*SHRINKING, "--stop-min-lr", 0.006], "lower --stop-min-lr", 2 * UPDATES_AN_EPOCH),
    "time": (["--stop-time-hours", 1e-9], "raise --stop-time-hours", 1),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("end", "further", "updates"), ENDS.values(), ids=ENDS)
def test_nothing_changes(corpora: Corpora, tmp_path: Path, end: list[Any], further: str, updates: int) -> None:
    command = [corpora.language_modeling, *MODEL, *TRAINING, "--max-epoch", 9, *end, "--save-dir", tmp_path]
    run("train", *command)
    assert state(tmp_path)["num_updates"] == updates
    before = contents(tmp_path)
    log = run("train", *command).log
    assert contents(tmp_path) == before
    (finished,) = [line for line in log if f" is finished: after {updates} upd" in line]
    assert finished.endswith(further)


def test_patience(corpora: Corpora, tmp_path: Path) -> None:
    """The first validation is the best, and each of the others counts, wherever training was stopped."""
    command = [corpora.language_modeling, *MODEL, *TRAINING, "--lr", 1e-30, "--max-epoch", 9]
    whole, parts, new = (tmp_path / name for name in ("whole", "parts", "new"))
    run("train", *command, "--patience", 2, "--save-dir", whole)
    assert state(whole)["num_updates"] == 3 * UPDATES_AN_EPOCH
    run("train", *command, "--patience", 1, "--save-dir", parts)
    # Another model that begins with these parameters has not been validated.
    finetuning = ["--finetune-from-model", parts / "checkpoint_last.pt", "--max-epoch", 1]
    run("train", *command, *finetuning, "--patience", 1, "--save-dir", new)
    assert state(new)["num_updates"] == UPDATES_AN_EPOCH
    run("train", *command, "--patience", 2, "--save-dir", parts)
    assert_same(state(parts), state(whole))


def test_time_of_another_training_run(corpora: Corpora, tmp_path: Path) -> None:
    """Fine-tuning has --stop-time-hours of its own, however long the training of its model took."""
    command = [corpora.language_modeling, *MODEL, *TRAINING, "--max-epoch", 1]
    run("train", *command, "--save-dir", tmp_path / "old")
    model = tmp_path / "old" / "checkpoint_last.pt"
    checkpoint = torch.load(model, weights_only=True)
    checkpoint["extra_state"]["previous_training_time"] = 1e6  # seconds
    torch.save(checkpoint, model)
    finetuning = ["--finetune-from-model", model, "--stop-time-hours", 1]
    run("train", *command, *finetuning, "--save-dir", tmp_path / "new")
    assert state(tmp_path / "new")["num_updates"] == UPDATES_AN_EPOCH
