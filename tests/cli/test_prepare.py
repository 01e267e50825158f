"""fairseq-stack prepare: failures of the system, and interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fairseq_stack import cli
from fairseq_stack_preprocess.cfl import string_sets

STRINGS = ["cfl", "--task", "dyck", "--limit", "10"]


def test_failure_of_the_system_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_the_disk(path: Path, lines: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(string_sets, "write_lines", fill_the_disk)
    assert cli.main(["prepare", *STRINGS, str(tmp_path / "out"), "--no-binarise"]) == 2
    assert capsys.readouterr().err.endswith("/text/train.txt: No space left on device\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "terminated"]
)
def test_interrupted_run_leaves_nothing(number: signal.Signals, code: int, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "fairseq_stack.cli", "prepare", "nested-translation"]
    process = subprocess.Popen(
        [*command, str(tmp_path / "new" / "out"), "--train-size", "1000000"],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background ignores Ctrl-C, and would have its children ignore it.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    wait_for_folder(tmp_path / "new", process)
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []


def wait_for_folder(parent: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a temporary folder stands below ``parent``: the work has begun."""
    deadline = time.monotonic() + 60
    while not (parent.is_dir() and list(parent.iterdir())):
        assert process.poll() is None, "the command ended by itself"
        assert time.monotonic() < deadline, "the command does not begin its work"
        time.sleep(0.02)
