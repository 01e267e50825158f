"""The manifest of a corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fairseq_stack.errors import UserError
from fairseq_stack_preprocess.layout import MANIFEST_NAME


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder, or None if there is none.

    Raises:
        UserError: it is not a JSON object, its corpus is not a name, or its options are not an object.
    """
    path = folder / MANIFEST_NAME
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not a manifest: {error}") from error
    if not isinstance(content, dict):
        raise UserError(f"{path} is not a manifest: expected an object, got {type(content).__name__}")
    if not isinstance(content.get("corpus", ""), str):
        raise UserError(f"{path} is not a manifest: expected corpus to be a name, got {content['corpus']}")
    options = content.get("options", {})
    if not isinstance(options, dict):
        raise UserError(f"{path} is not a manifest: expected options to be an object, got {type(options).__name__}")
    return content
