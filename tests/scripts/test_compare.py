"""The comparison of two checkouts, here of one with itself."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from scripts.benchmark.compared import cases
from tests.conftest import REPOSITORY

COMMAND = [sys.executable, "scripts/compare.py"]


@pytest.mark.parametrize("name", [name for name in cases() if not re.search(r"\(|float64", name) or "(4, 16" in name])
def test_small_cases_run(name: str) -> None:
    assert cases()[name]()() is not None, "a case returns what it has computed, or its times"


def test_no_checkout() -> None:
    done = subprocess.run([*COMMAND, "/nowhere"], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 2
    assert "OTHER: expected a checkout of this project, got /nowhere" in done.stderr
