"""``manifest.json``: the inputs, options, counts and outputs of a run. It holds no date and no absolute path, so
that a second run with the same inputs gives the same bytes."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..layout import DATA_BIN, MANIFEST_NAME

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass
class Manifest:
    """What a corpus module knows about its run; :meth:`write` adds the hashes of the outputs.

    Attributes:
        corpus: the corpus' name on the command line.
        options: every option that shapes the output, the seed included, under its name in the ``Options``.
        splits: counts for each split (sentences, tokens, ...).
        dropped: for each split, a reason and how many lines or draws it cost; empty: none was dropped.
        inputs: for each input file, its name and its sha256; empty for generated corpora.
        packages: further distributions whose versions are recorded.
        more: further facts, by name; each becomes an entry of the manifest.
    """

    corpus: str
    options: Mapping[str, Any]
    splits: Mapping[str, Mapping[str, Any]]
    dropped: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    packages: Sequence[str] = ()
    more: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into ``folder``, with size and sha256 of every other file below it.

        If fairseq wrote its binary format there, its version is recorded as well.
        """
        versions = {"fairseq_stack": version_of("fairseq_stack"), "python": platform.python_version()}
        if (folder / DATA_BIN).is_dir():
            versions["fairseq"] = version_of("fairseq-fixed", "ve-fairseq", "fairseq", named=True)
        versions |= {package: metadata.version(package) for package in self.packages}
        content = {
            "corpus": self.corpus,
            "options": dict(self.options),
            "versions": versions,
            "inputs": dict(self.inputs),
            "splits": {split: dict(counts) for split, counts in self.splits.items()},
            "dropped": {split: dict(sorted(self.dropped.get(split, {}).items())) for split in self.splits},
            **self.more,
            "outputs": describe_files(folder),
        }
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        (folder / MANIFEST_NAME).write_text(text, encoding="utf-8", newline="\n")


def options_without(options: DataclassInstance, *names: str) -> dict[str, Any]:
    """The options except the ones with these names: paths, which differ between machines."""
    return {name: value for name, value in asdict(options).items() if name not in names}


def sha256_of(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size in bytes and sha256 of every file below ``folder`` except the manifest, by relative path, sorted."""
    paths = (path for path in folder.rglob("*") if path.is_file())
    relative = sorted(path.relative_to(folder).as_posix() for path in paths)
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in relative
        if name != MANIFEST_NAME
    }


def version_of(*distributions: str, named: bool = False) -> str:
    """The version of the first of these distributions that is installed, after its name on request."""
    for distribution in distributions:
        try:
            version = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        return f"{distribution} {version}" if named else version
    return "unknown"
