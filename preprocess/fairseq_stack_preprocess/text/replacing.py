"""Which folders ``--force`` may replace: folders that hold an unchanged corpus, and nothing else.

A corpus is recognised by the content of its manifest, whose ``outputs`` are the names, sizes and hashes of its files.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import DATA_BIN, MANIFEST_NAME
from .manifest import sha256_of

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
        names = list(_foreign(folder, _outputs(folder)))
    except OSError as error:
        raise PrepareError(f"--force: cannot read {error.filename or folder}: {error.strerror}") from error
    except ValueError as error:
        raise PrepareError(
            f"{folder} is not a folder that fairseq-stack prepare wrote: {error}; --force replaces only such folders"
        ) from error
    if names:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        raise PrepareError(
            f"--force would delete files in {folder} that are not part of the corpus written there: "
            f"{', '.join(names[:MOST_NAMES])}{more}; move them elsewhere, or choose another folder"
        )


def _outputs(folder: Path) -> Mapping[str, Any]:
    """The files that the manifest in ``folder`` lists: size and sha256 by relative path.

    Raises:
        ValueError: there is no manifest, or it is not the manifest of a corpus.
        OSError: it cannot be read.
    """
    path = folder / MANIFEST_NAME
    if not os.path.lexists(path):
        raise ValueError(f"it does not hold a {MANIFEST_NAME}")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError(f"its {MANIFEST_NAME} is not a file")
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {MANIFEST_NAME} is not JSON") from error
    if not isinstance(content, dict):
        raise ValueError(f"its {MANIFEST_NAME} does not describe a corpus")
    for key, kind in KEYS.items():
        if not isinstance(content.get(key), kind):
            raise ValueError(f"its {MANIFEST_NAME} does not describe a corpus: expected {json.dumps(key)}")
    outputs: dict[str, Any] = content["outputs"]
    return outputs


def _foreign(folder: Path, outputs: Mapping[str, Any]) -> Iterator[str]:
    """The names in ``folder`` that the manifest does not list as they are; a folder is named without its content."""
    known = {parent for name in outputs for parent in Path(name).parents}
    files = {MANIFEST_NAME, LOG, *outputs}
    folders = [folder]
    while folders:
        with os.scandir(folders.pop()) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
        for entry in entries:
            path = Path(entry.path)
            name = path.relative_to(folder).as_posix()
            if entry.is_dir(follow_symlinks=False):
                if Path(name) in known:
                    folders.append(path)
                else:
                    yield f"{name}/"
            elif not entry.is_file(follow_symlinks=False) or name not in files:
                yield name
            elif name in outputs and outputs[name] != {"bytes": path.stat().st_size, "sha256": sha256_of(path)}:
                yield f"{name} (changed since it was written)"
