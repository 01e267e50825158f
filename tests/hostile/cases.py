"""Hostile commands: what each must end with, and what is checked of all of them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.commands.running import Ending, Server


@dataclass(frozen=True)
class Case:
    """A command and how it must end.

    Attributes:
        name: of the case.
        command: as in a shell, without a shell's expansions; ``{name}`` is an entry of the workspace.
        message: what the last line of standard error must contain; "" for a command that succeeds.
        prints: what standard output must contain.
        files: written into the current folder before, by relative path.
        stdin: of the command.
        quick: whether the case is among those that every run of the tests has.
    """

    name: str
    command: str
    message: str = ""
    prints: str = ""
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    stdin: str | bytes = ""
    quick: bool = False


def parametrize(cases: Iterable[Case]) -> pytest.MarkDecorator:
    """Run a test with every case; those that are not quick only with ``--hostile``."""
    return pytest.mark.parametrize(
        "case",
        [pytest.param(case, id=case.name, marks=() if case.quick else pytest.mark.hostile) for case in cases],
    )


def check(case: Case, server: Server, workspace: Mapping[str, str], folder: Path) -> Ending:
    """Run a case in an empty folder and assert that it ends as it should, leaving nothing half-written."""
    for name, content in case.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    before = describe(folder)
    words = [word.format_map(workspace) for word in shlex.split(case.command)]
    words = [part for word in words for part in (word.split("\0") if "\0" in word else [word])]
    ending = server.run(words, folder, case.stdin)
    said = f"{shlex.join(words)}\nexit code {ending.code}\n{ending.errors}"
    assert "Traceback" not in ending.errors, said
    if not case.message:
        assert ending.code == 0, said
        assert case.prints in ending.printed, f"{said}\n{ending.printed}"
        leftovers = [path for path in describe(folder) if ".part" in path]
        assert not leftovers, said
        return ending
    assert ending.code not in (0, -11, -6), said
    assert case.message in ending.last_line, said
    assert describe(folder) == before, said
    return ending


def describe(folder: Path) -> dict[str, int]:
    """The size of every file below a folder, by relative path; fairseq makes empty folders before it checks options."""
    return {
        path.relative_to(folder).as_posix(): path.lstat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }
