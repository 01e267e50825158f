"""No file of code is longer than can be read in one go, except for a reason that is written down here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.commands.running import REPOSITORY

LINES_AT_MOST = 300
ROOMS = ("fairseq_stack", "preprocess", "scripts", "tests", ".ci")
SUFFIXES = {".py", ".c", ".h", ".sh"}
REASONS = {
    "tests/ops/stacks.py": "all stacks, and all ways to compute them",
    "fairseq_stack/ops/nondeterministic/_panel_columns.py": "panels and what computes them",
}
"""Why a file is longer, by its path in the repository."""


def length(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def code() -> Iterator[tuple[str, int]]:
    """The path and the number of lines of each file of Python, C or shell."""
    for path in REPOSITORY.glob("*.py"):
        yield path.name, length(path)
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*")):
            if path.suffix in SUFFIXES or (room == ".ci" and path.is_file()):
                yield path.relative_to(REPOSITORY).as_posix(), length(path)


def test_longer_files_have_a_reason() -> None:
    longer = {path: lines for path, lines in code() if lines > LINES_AT_MOST}
    assert len(list(code())) > 300
    assert longer.keys() == REASONS.keys()
    assert all(REASONS.values())
