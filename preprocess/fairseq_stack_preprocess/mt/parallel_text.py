"""Parallel text, whatever its form: pairs of a source and a target sentence, read as a stream.

A corpus is named by the PREFIX of its files. With German and English, PREFIX is one of

- plain text, ``PREFIX.de`` and ``PREFIX.en``;
- WMT's test sets up to 2020, ``PREFIX-src.de.sgm`` and ``PREFIX-ref.en.sgm``;

each of them plain or with ``.gz`` at the end of its name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from ..errors import PrepareError
from ..text.streams import read_blocks, require_file
from .wmt_markup import Pair, read_sgm_pairs

Transform = Callable[[str], str]
"""Changes characters of a text of one or more lines, but not where lines end."""


@dataclass(frozen=True)
class PairedFiles:
    """The files of one corpus.

    Attributes:
        form: ``plain`` or ``sgm``.
        source: the file with the source sentences.
        target: the file with the target sentences.
    """

    form: str
    source: Path
    target: Path


def find_files(prefix: Path, source: str, target: str) -> PairedFiles:
    """The files of the corpus PREFIX for two languages; plain text takes precedence.

    Raises:
        PrepareError: there are none, one side only, or what has such a name is not a file.
    """
    names = {
        "plain": (f"{prefix}.{source}", f"{prefix}.{target}"),
        "sgm": (f"{prefix}-src.{source}.sgm", f"{prefix}-ref.{target}.sgm"),
    }
    for form, sides in names.items():
        ours, theirs = map(_plain_or_compressed, sides)
        if ours is not None and theirs is not None:
            return PairedFiles(form, ours, theirs)
        if ours is not None or theirs is not None:
            there, absent = (ours, sides[1]) if theirs is None else (theirs, sides[0])
            raise PrepareError(f"{there} has no other side: {absent} is missing (as is {absent}.gz)")
    wanted = "; ".join(" and ".join(sides) for sides in names.values())
    raise PrepareError(f"no text for {prefix}: expected {wanted}; or the same with .gz")


def _plain_or_compressed(name: str) -> Path | None:
    for path in (Path(name), Path(f"{name}.gz")):
        if os.path.lexists(path):
            require_file(path)
            return path
    return None


def read_pairs(
    files: PairedFiles,
    transform: tuple[Transform, Transform],
    *,
    keep_separators: bool = False,
) -> Iterator[Pair]:
    """Yield the pairs of a corpus.

    Args:
        files: where they are.
        transform: what is applied to the source and to the target text.
        keep_separators: whether :data:`.streams.SEPARATORS` are characters like any other.

    Raises:
        PrepareError: the files cannot be read as text, or their sides disagree.
    """
    if files.form == "plain":
        yield from _read_plain(files, transform, keep_separators)
        return
    count = 0
    pairs = read_sgm_pairs(files.source, files.target, keep_separators=keep_separators)
    for ours, theirs in pairs:
        count += 1
        yield transform[0](ours), transform[1](theirs)
    if not count:
        raise PrepareError(f"{files.source} is empty: expected a <seg>")


def _read_plain(files: PairedFiles, transform: tuple[Transform, Transform], keep_separators: bool) -> Iterator[Pair]:
    """Lines of two files. The transform is applied to blocks of lines, which is much faster than to each."""

    def lines(path: Path, change: Transform) -> Iterator[str]:
        blocks = read_blocks(path, keep_separators=keep_separators)
        return chain.from_iterable(change(block).split("\n") for block in blocks)

    sides = map(lines, (files.source, files.target), transform)
    count = 0
    for count, (ours, theirs) in enumerate(zip_longest(*sides), start=1):
        if ours is None or theirs is None:
            short, long = (files.source, files.target) if ours is None else (files.target, files.source)
            raise PrepareError(f"{short} ends after line {count - 1}, but {long} has a line {count}")
        yield ours, theirs
