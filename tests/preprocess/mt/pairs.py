"""What tests of parallel text share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fairseq_stack_preprocess.mt.translation_corpus import Options

SPLITS = ("train", "valid", "test")


def options_for(prefix: Path, **settings: Any) -> Options:
    """Options with the same text for each split."""
    values = {"source": "de", "target": "en", "train": (prefix,), "valid": prefix, "test": prefix, "pieces": 60}
    return Options(**{**values, "binarise": False, **settings})


def write_pairs(prefix: Path, pairs: list[tuple[str, str]]) -> Path:
    for language, lines in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
        Path(f"{prefix}.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    return prefix
