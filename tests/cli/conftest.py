"""Fixtures for tests of the command fairseq-stack."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack import cli


@pytest.fixture
def plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs ``fairseq-stack plot`` in the temporary folder and returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def run(command: str) -> str:
        assert cli.main(["plot", *command.split()]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return run


@pytest.fixture
def refusal(plot: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """Runs ``fairseq-stack plot``, which fails, writes nothing, and says why in the line that is returned."""

    def run(command: str) -> str:
        before = sorted(tmp_path.rglob("*"))
        assert cli.main(["plot", *command.split()]) == 2
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return captured.err.removeprefix("fairseq-stack: error: ").rstrip("\n")

    return run


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that commands draw."""
    Figure = pytest.importorskip("matplotlib.figure").Figure
    figures: list[Any] = []
    savefig = Figure.savefig

    def save(figure: Any, *args: Any, **kwargs: Any) -> None:
        figures.append(figure)
        savefig(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", save)
    return figures
