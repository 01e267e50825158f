"""The folder of a corpus, and its manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as
from fairseq_stack_preprocess.layout import DATA_BIN, MANIFEST_NAME


def corpus_at(folder: Path) -> tuple[Path, Path | None]:
    """The folder of a corpus, and of its dictionaries, or None if it was not binarised.

    Args:
        folder: the folder of the corpus, or its ``data-bin``.

    Raises:
        UserError: it is not a folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder")
    root = folder.parent if folder.name == DATA_BIN and not (folder / MANIFEST_NAME).is_file() else folder
    return root, root / DATA_BIN if (root / DATA_BIN).is_dir() else None


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest in a folder; empty if there is none.

    Raises:
        UserError: the file is damaged.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return {}
    with reading_as("a manifest of fairseq-stack prepare", path):
        return dict(json.loads(read_text(path)))
