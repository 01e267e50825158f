"""Random calls of the ops, and that the fuzzer finds faults; ``fuzz.py`` makes and checks the calls."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY
from tests.ops import fuzz

CALLS = 400
HOSTILE_CALLS = 10_000


def test_random_calls() -> None:
    endings, failures = fuzz.run(range(CALLS))
    assert not failures, "\n".join(failures)
    assert min(endings.values()) > CALLS // 5


@pytest.mark.hostile
def test_many_random_calls() -> None:
    """In a process of its own, which a crash would end."""
    command = [sys.executable, "-m", "tests.ops.fuzz", "--calls", str(HOSTILE_CALLS)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr[-1000:]
