"""The comparison of two checkouts, here of one with itself."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

from scripts.benchmark import compared
from scripts.benchmark.compared import Run, cases
from tests.conftest import REPOSITORY

COMMAND = [sys.executable, "scripts/compare.py"]


def test_a_checkout_beside_itself() -> None:
    names = "queue 60", "input_buffer 60"
    done = subprocess.run(
        [*COMMAND, ".", "--rounds", "1", "--only", *names], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    heading, *rows, result = done.stdout.splitlines()
    assert heading.split() == ["case", *(x for unit in ("ms", "MB") for x in ("ratio", "here", unit, "other", unit))]
    for name, row in zip(names, rows, strict=True):
        time, here, other, memory, *megabytes = map(float, row.removeprefix(name).split()[:6])
        assert time == pytest.approx(here / other, abs=0.01)
        assert memory == pytest.approx(max(megabytes[0], 0.5) / max(megabytes[1], 0.5), abs=0.02)
    counts = f"{done.stdout.count('slower') - 1} slower, {done.stdout.count('larger') - 1} larger, 0 not compared"
    assert result == f"2 cases: {counts} (more than 5%)"


@pytest.mark.parametrize("name", [name for name in cases() if not re.search(r"\(|float64", name) or "(4, 16" in name])
def test_small_cases_run(name: str) -> None:
    assert cases()[name]()() is not None, "a case returns what it has computed, or its times"


def test_a_case_that_a_checkout_lacks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def lacking() -> Run:
        raise AttributeError("module 'fairseq_stack.ops' has no attribute 'queue'")

    monkeypatch.setattr(compared, "cases", lambda: {"queue": lacking, "none": lambda: list})
    monkeypatch.setattr("sys.stdin", io.StringIO("\nqueue\nnone\n"))
    compared.work(compared.milliseconds)
    names, error, figure = map(json.loads, capsys.readouterr().out.splitlines())
    assert names == ["queue", "none"]
    assert error == "AttributeError: module 'fairseq_stack.ops' has no attribute 'queue'"
    assert 0 < figure < 1


def test_no_checkout() -> None:
    done = subprocess.run([*COMMAND, "/nowhere"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2
    assert "OTHER: expected a checkout of this project, got /nowhere" in done.stderr
