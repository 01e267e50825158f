"""--lr-scheduler validation_plateau counts every validation of a training run, and resumes exactly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.end_to_end.conftest import Corpora
from tests.end_to_end.running import LANGUAGE_MODEL, TRAINING, run
from tests.end_to_end.test_resuming import DROPOUT, assert_same, state

# No validation improves on the first by 90 percent, so that every second one halves the learning rate.
PLATEAU = [
    *("--lr-scheduler", "validation_plateau", "--lr-threshold", 0.9, "--lr-patience", 1, "--lr-shrink", 0.5),
    *("--save-interval-updates", 2, "--keep-interval-updates", 1, "--max-epoch", 3),
]


def test_training_counts_each_validation_and_resumes_exactly(corpora: Corpora, tmp_path: Path) -> None:
    """Three updates an epoch: validations after 2, 3, 4, 6, 8 and 9 updates."""
    training = [corpora.language_modeling, *LANGUAGE_MODEL, *TRAINING, *DROPOUT, *PLATEAU]
    run("train", *training, "--save-dir", tmp_path / "whole")
    whole = state(tmp_path / "whole")
    assert whole["num_updates"] == 9
    # The first validation is the best; after it come five that are not better.
    assert whole["optimizer"]["param_groups"][0]["lr"] == pytest.approx(0.01 / 4)
    for updates in (2, 3, 4):
        folder = tmp_path / str(updates)
        run("train", *training, "--max-update", updates, "--save-dir", folder)
        run("train", *training, "--save-dir", folder)
        assert_same(state(folder), whole)
