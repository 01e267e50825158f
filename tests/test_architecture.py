"""What an import brings in. Who may import whom is in pyproject.toml, for ``lint-imports``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


def modules_of(room: str, root: str = ".") -> str:
    """The modules of a room, except those whose names begin with an underscore."""
    paths = (path.relative_to(REPOSITORY / root) for path in (REPOSITORY / root / room).rglob("[!_]*.py"))
    return ", ".join(".".join(path.with_suffix("").parts) for path in paths)


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("fairseq_stack, fairseq_stack.errors, fairseq_stack.files", "torch fairseq numpy"),
        ("fairseq_stack.cli, fairseq_stack_preprocess.nested.nested_corpus", "torch fairseq numpy tqdm"),
        (modules_of("fairseq_stack/evaluation"), "torch fairseq"),
        (modules_of("fairseq_stack/plots"), "torch fairseq matplotlib"),
        (modules_of("fairseq_stack_preprocess", "preprocess"), "torch fairseq fairseq_cli"),
    ],
    ids=["package", "prepare", "evaluation", "plots", "preprocess"],
)
def test_import_brings_in_nothing_heavy(modules: str, absent: str) -> None:
    program = f"import sys, {modules}; print(*sorted(sys.modules.keys() & set({absent.split()})))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
