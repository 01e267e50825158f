"""Schedules of the learning rate resume exactly, during warm-up and after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairseq.trainer import Trainer

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.fairseq_commands import BARE_LANGUAGE_MODEL, TRAINING, run
from tests.end_to_end.test_resuming import DROPOUT, assert_same, interrupting, state

# Of the validations after warm-up the first, after 6 updates, is the best.
SCHEDULES = {
    "plateau": ["validation_plateau", "--lr-threshold", 0.9, "--lr-patience", 0, "--lr-shrink", 0.5],
    "linear": ["polynomial_decay", "--total-num-update", 8],
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_warm_up(corpora: Corpora, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, schedule: list[Any]) -> None:
    """Interrupted during warm-up, and after it: each update has the rate of uninterrupted training."""
    model = [*BARE_LANGUAGE_MODEL, "--stack-layers", "sup-4", *TRAINING, *DROPOUT, "--max-epoch", 3]
    saving = ["--save-interval-updates", 2, "--keep-interval-updates", 1]
    training = [corpora.language_modeling, *model, *saving, "--warmup-updates", 4, "--lr-scheduler", *schedule]
    rates: dict[int, set[float]] = {}

    def noting_rate(self: Trainer, *args: Any) -> Any:
        rates.setdefault(self.get_num_updates(), set()).add(self.get_lr())
        return train_step(self, *args)

    train_step = Trainer.train_step
    monkeypatch.setattr(Trainer, "train_step", noting_rate)
    run("train", *training, "--save-dir", tmp_path / "whole")
    for num_updates in (3, 7):
        with monkeypatch.context() as patch:
            patch.setattr(Trainer, "train_step", interrupting(noting_rate, num_updates))
            with pytest.raises(KeyboardInterrupt):
                run("train", *training, "--save-dir", tmp_path / "parts")
    run("train", *training, "--save-dir", tmp_path / "parts")
    assert_same(state(tmp_path / "parts"), state(tmp_path / "whole"))
    assert all(len(of_update) == 1 for of_update in rates.values())
    by_update = [min(rates[update]) for update in range(9)]
    assert by_update[:5] == pytest.approx([0, 0.0025, 0.005, 0.0075, 0.01])
    assert by_update[8] < 0.01
