"""The comparison of two checkouts, here of one with itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY

COMMAND = [sys.executable, "scripts/compare.py"]


def test_a_checkout_beside_itself() -> None:
    case = "strat (10, 60, 32) float32"
    done = subprocess.run(
        [*COMMAND, ".", "--rounds", "1", "--only", case], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    heading, row, result = done.stdout.splitlines()
    assert heading.split() == ["case", "ratio", "here", "ms", "other", "ms"]
    ratio, here, other = map(float, row.removeprefix(case).split()[:3])
    assert here > 0 and other > 0
    assert ratio == pytest.approx(here / other, abs=0.01)
    assert result == f"{int(row.endswith('slower'))} of 1 cases are slower by more than 5%"


def test_peak_memory_of_a_checkout_beside_itself() -> None:
    case = "sup (10, 80, 511) float32"
    done = subprocess.run([*COMMAND, ".", "--memory", "--only", case], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    _, row, _ = done.stdout.splitlines()
    _, here, other = map(float, row.removeprefix(case).split()[:3])
    assert here == pytest.approx(other, rel=0.2)
    assert here > 4 * 10 * 80 * 511 / 2**20  # as large as the readings, at least


def test_no_checkout() -> None:
    done = subprocess.run([*COMMAND, "/nowhere"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2
    assert "OTHER: expected a checkout of this project, got /nowhere" in done.stderr
