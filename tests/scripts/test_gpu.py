"""What waits for a GPU, in tiny sizes on the CPU."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.conftest import REPOSITORY

PARTS = [
    *("doctor", "tests_nd", "steps_triton", "steps_pytorch", "stacks_nd"),
    *("decoding", "stacks_others", "tests_others"),
]


def test_the_other_parts_run_if_one_fails(tmp_path: Path) -> None:
    """All parts fail here, since their python is one that fails."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\necho broken\nexit 3\n")
    python.chmod(0o755)
    done = run(tmp_path / "out", PATH=f"{python.parent}:/usr/bin:/bin")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2:] == ["==> Passed: ", f"==> Failed: {' '.join(PARTS)}"]
    assert (tmp_path / "out" / "doctor.log").read_text() == "broken\n"


def run(out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", "scripts/gpu.sh", "--tiny", str(out)]
    return subprocess.run(command, cwd=REPOSITORY, env=os.environ | environment, capture_output=True, text=True)
