"""Which folders ``--force`` may replace: folders that hold an unchanged corpus, and nothing else.

A corpus is recognised by the content of its manifest, whose ``outputs`` are the names, sizes and hashes of its files.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from .binarise import DATA_BIN
from .manifest import MANIFEST_NAME, sha256_of

KEYS = {"corpus": str, "options": dict, "versions": dict, "outputs": dict}
"""The keys that every manifest has, and the types of their values."""

LOG = f"{DATA_BIN}/preprocess.log"
"""fairseq-preprocess writes this file whenever it runs; nothing else writes it."""

MOST_NAMES = 5


def check_replaceable(folder: Path) -> None:
    """Raise PrepareError unless ``folder`` is empty or holds an unchanged corpus and nothing else.

    All files of the corpus are read.
    """
    try:
        if not any(folder.iterdir()):
            return
        found = list(foreign(folder, read_outputs(folder)))
    except OSError as error:
        raise PrepareError(f"--force: cannot read {error.filename or folder}: {error.strerror}") from error
    if found:
        more = f" and {len(found) - MOST_NAMES} more" if len(found) > MOST_NAMES else ""
        raise PrepareError(
            f"--force would delete files in {folder} that are not part of the corpus written there: "
            f"{', '.join(found[:MOST_NAMES])}{more}; move them elsewhere, or choose another folder"
        )


def read_outputs(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """The files that the manifest in ``folder`` lists: size and sha256 by relative path.

    Raises:
        PrepareError: there is no manifest, or it is not the manifest of a corpus.
        OSError: it cannot be read.
    """
    path = folder / MANIFEST_NAME
    if not os.path.lexists(path):
        raise _not_ours(folder, f"it does not hold a {MANIFEST_NAME}")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise _not_ours(folder, f"its {MANIFEST_NAME} is not a file")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise _not_ours(folder, f"its {MANIFEST_NAME} is not JSON") from error
    if not isinstance(content, dict):
        raise _not_ours(folder, f"its {MANIFEST_NAME} does not describe a corpus")
    for key, kind in KEYS.items():
        if not isinstance(content.get(key), kind):
            raise _not_ours(folder, f"its {MANIFEST_NAME} does not describe a corpus: expected {json.dumps(key)}")
    outputs: dict[str, Any] = content["outputs"]
    return {name: entry if isinstance(entry, dict) else {} for name, entry in outputs.items()}


def _not_ours(folder: Path, reason: str) -> PrepareError:
    return PrepareError(
        f"{folder} is not a folder that fairseq-stack prepare wrote: {reason}; --force replaces only such folders"
    )


def is_corpus(folder: Path) -> bool:
    """Whether the folder has the manifest of a corpus."""
    try:
        read_outputs(folder)
    except (OSError, PrepareError):
        return False
    return True


def foreign(folder: Path, outputs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The names in ``folder`` that the manifest does not list as they are; a folder is named without its content."""
    known = {parent for name in outputs for parent in Path(name).parents}
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            relative = Path(entry.path).relative_to(folder)
            name = relative.as_posix()
            if entry.is_dir(follow_symlinks=False) and relative in known:
                folders.append(Path(entry.path))
            elif entry.is_dir(follow_symlinks=False):
                yield f"{name}/"
            elif entry.is_file(follow_symlinks=False) and name in (MANIFEST_NAME, LOG):
                continue
            elif name not in outputs or not entry.is_file(follow_symlinks=False):
                yield name
            elif not _is_as_written(Path(entry.path), outputs[name]):
                yield f"{name} (changed since it was written)"


def _is_as_written(path: Path, entry: Mapping[str, Any]) -> bool:
    return path.stat().st_size == entry.get("bytes") and sha256_of(path) == entry.get("sha256")


def remove_corpus(folder: Path) -> None:
    """Delete a corpus, or nothing if the folder holds anything except files as its manifest lists them.

    An empty folder and the rest of a corpus whose deletion was interrupted are deleted, too. All files are read.

    Raises:
        OSError: a file cannot be read or deleted.
    """
    if not os.path.lexists(folder):
        return
    with contextlib.suppress(PrepareError):
        outputs = read_outputs(folder)
        if any(foreign(folder, outputs)):
            return
        listed = {*outputs, LOG}
        inside = sorted(folder.rglob("*"), reverse=True)  # the content of a folder before the folder
        for path in inside:
            if path.is_dir() and not path.is_symlink():
                _remove_if_empty(path)
            elif path.relative_to(folder).as_posix() in listed:
                path.unlink()
        # The manifest goes last: it says what else may be deleted.
        if {path.name for path in folder.iterdir()} == {MANIFEST_NAME}:
            (folder / MANIFEST_NAME).unlink()
    _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()
