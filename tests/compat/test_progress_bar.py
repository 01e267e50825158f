"""A log has each line once, however many progress bars write to it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from fairseq.logging import progress_bar


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = list(progress_bar.logger.handlers)
    yield
    for handler in set(progress_bar.logger.handlers) - set(before):
        progress_bar.logger.removeHandler(handler)
        handler.close()


def finish(log: Path, epoch: int) -> None:
    """The progress bar of an epoch prints its statistics."""
    logging.getLogger("fairseq").setLevel(logging.INFO)
    bar = progress_bar.progress_bar(range(3), log_format="json", log_file=str(log), epoch=epoch)
    bar.print({"epoch": epoch}, tag="train")


@pytest.mark.usefixtures("shims")
def test_each_line_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for epoch in range(1, 5):
        finish(tmp_path / "train.log" if epoch % 2 else Path("train.log"), epoch)
    finish(tmp_path / "other.log", 5)
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert lines == [f'{{"epoch": {epoch}, "train_epoch": "{epoch}"}}' for epoch in range(1, 6)]
    assert (tmp_path / "other.log").read_text().splitlines() == lines[4:]
