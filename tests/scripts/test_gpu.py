"""All that waits for a GPU: each part runs, and none stops the others."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PARTS = ("doctor", "training-triton", "training-pytorch", "stacks", "decoding-triton", "decoding-pytorch", "tests")
STUB = """#!/bin/sh
echo "$FAIRSEQ_STACK_TRITON" "$@"
case "$*" in *decoding-pytorch*) exit 3;; esac
"""


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", REPOSITORY / "scripts/gpu.sh", *arguments]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


def test_a_part_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    python, out, clone = tmp_path / "python", tmp_path / "out", tmp_path / "clone"
    python.write_text(STUB)
    python.chmod(0o755)
    clone.mkdir()
    result = run(out, clone, PYTHON=str(python))
    assert result.returncode == 1, result.stderr
    assert result.stdout.endswith("==> Failed: decoding-pytorch\n")
    logs = {log.stem: log.read_text() for log in out.iterdir()}
    assert {*logs} == {*PARTS, "authors"}
    assert all(logs[name].startswith("0 " if name.endswith("-pytorch") else "1 ") for name in logs)
    assert f"--authors {clone}" in logs["authors"]
    assert all("--device cuda" in logs[name] for name in logs if name not in ("doctor", "tests"))


def test_a_wrong_call_shows_the_usage(tmp_path: Path) -> None:
    result = run()
    assert result.returncode == 2
    assert "scripts/gpu.sh OUT [AUTHORS]" in result.stderr


@pytest.mark.triton
@pytest.mark.hostile
def test_tiny_sizes_without_a_gpu(tmp_path: Path) -> None:
    result = run("--tiny", tmp_path / "out", PYTHON=sys.executable, TRITON_INTERPRET="1")
    assert result.returncode == 0, result.stdout
    assert {log.stem for log in (tmp_path / "out").glob("*.log")} == {*PARTS}
