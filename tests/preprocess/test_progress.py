"""Progress in a log and on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from fairseq_stack_preprocess import progress as progress_module
from fairseq_stack_preprocess.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_in_a_log_is_plain_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress_module, "SECONDS_BETWEEN_LINES", 0.0)
    assert list(progress(iter("ab"), label="corpus", total=2)) == ["a", "b"]
    assert capsys.readouterr().err == "corpus: 1 of 2\ncorpus: 2 of 2\ncorpus: 2 of 2, done\n"


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert list(progress(iter("ab"), label="corpus", total=2)) == ["a", "b"]
    assert "corpus: 100%" in terminal.getvalue()
