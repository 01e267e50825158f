"""A small corpus, and what tests read of the folder of one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from fairseq_stack_preprocess.cfl.language_options import Options


def small(seed: int = 0, *, binarise: bool = False) -> Options:
    """A few strings of a formal language."""
    return Options(
        task="unmarked-reversal", min_length=10, max_length=20, test_min_length=10, test_max_length=18,
        train_size=60, valid_size=9, test_per_length=2, seed=seed, binarise=binarise,
    )  # fmt: skip


def names(folder: Path) -> list[str]:
    """What is in a folder, sorted."""
    return sorted(path.name for path in folder.iterdir())


def lines_of(path: Path) -> list[str]:
    """The lines of a file, split at line feeds only."""
    text = path.read_bytes().decode()
    assert text.endswith("\n")
    return text.removesuffix("\n").split("\n")


def manifest_of(folder: Path) -> dict[str, Any]:
    """The content of a corpus' manifest."""
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content


def snapshot(folder: Path) -> dict[str, bytes | str]:
    """The content of every file below a folder; of links, where they lead to."""
    return {
        path.relative_to(folder).as_posix(): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else "not a file"
        for path in sorted(folder.rglob("*"))
    }


def sha256_without_manifest(folder: Path) -> str:
    """A hash of the names and the bytes of all files but the manifest, which has versions."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "manifest.json":
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
