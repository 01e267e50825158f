"""Programs that run as if some packages were not installed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conftest import REPOSITORY

FAIRSEQ = ("fairseq", "fairseq_cli", "hydra", "omegaconf", "sacrebleu")
"""What an exported model does not need."""

# What is found on the path of modules lacks the packages.
WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in ABSENT else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
"""


def run_without(
    absent: Sequence[str], program: str, *arguments: str, folder: Path = REPOSITORY, stdin: str = ""
) -> str:
    """What the program prints in the folder without the packages."""
    command = [sys.executable, "-c", f"ABSENT = {tuple(absent)}\n{WITHOUT}{program}", *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, input=stdin, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout
