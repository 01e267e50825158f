"""Output folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from .binarise import TEXT, require_fairseq
from .errors import PrepareError
from .manifest import MANIFEST_NAME


def create_text(path: Path) -> TextIO:
    """Open a new file of text, in UTF-8 with line feeds on every platform."""
    return open(path, "w", encoding="utf-8", newline="\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write ``lines`` as UTF-8 with a line feed after each, on every platform."""
    with create_text(path) as file:
        file.writelines(f"{line}\n" for line in lines)


@contextlib.contextmanager
def corpus_folder(target: Path, *, binarise: bool, force: bool) -> Iterator[Path]:
    """An :func:`output_folder` with an empty folder for text in it.

    Raises:
        PrepareError: fairseq is not installed, though the corpus will be binarised; or see :func:`output_folder`.
    """
    if binarise:
        require_fairseq()
    with output_folder(target, force=force) as folder:
        (folder / TEXT).mkdir()
        yield folder


@contextlib.contextmanager
def output_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Yield a temporary sibling of ``target`` that is renamed to ``target`` when the block ends without
    error.

    If the block raises (KeyboardInterrupt included) the temporary folder and any parent folders made for it
    are removed, and ``target`` is as it was. With ``force`` an existing ``target`` stays in place until the
    new folder is complete.

    Raises:
        PrepareError: ``target`` exists and ``force`` is not given; ``force`` is given but ``target`` is
            neither empty nor a folder that holds a manifest; or no folder can be made beside it.
    """
    target = target.resolve()
    _check_existing(target, force)
    made_parents = _make_parents(target)
    temporary = _sibling(target, "partial")
    try:
        try:
            temporary.mkdir()
        except OSError as error:
            raise PrepareError(f"cannot write to {target.parent}: {error.strerror}") from error
        yield temporary
        _install(temporary, target, force)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in made_parents:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def check_target(target: Path, *, force: bool = False) -> None:
    """Raise PrepareError if :func:`output_folder` would refuse ``target``, without writing anything."""
    target = target.resolve()
    _check_existing(target, force)
    parent = next(parent for parent in target.parents if os.path.lexists(parent))
    if not parent.is_dir():
        raise PrepareError(f"cannot write to {parent}: Not a directory")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise PrepareError(f"cannot write to {parent}: Permission denied")


def _check_existing(target: Path, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise PrepareError(f"{target} exists already; give --force to replace it")
    if not target.is_dir():
        raise PrepareError(f"{target} is not a folder; --force replaces folders only")
    if any(target.iterdir()) and not (target / MANIFEST_NAME).is_file():
        raise PrepareError(f"{target} holds no {MANIFEST_NAME}; --force replaces only folders made by this command")


def _make_parents(target: Path) -> list[Path]:
    """Make the missing parents of ``target``; return them, innermost first."""
    missing = [parent for parent in target.parents if not os.path.lexists(parent)]
    made: list[Path] = []
    try:
        for parent in reversed(missing):
            parent.mkdir()
            made.insert(0, parent)
    except OSError as error:
        for parent in made:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise PrepareError(f"cannot make the folder {target.parent}: {error.strerror}") from error
    return made


def _install(temporary: Path, target: Path, force: bool) -> None:
    """Rename ``temporary`` to ``target``; an old ``target`` is put back if that fails."""
    if not os.path.lexists(target):
        temporary.rename(target)
        return
    _check_existing(target, force)
    old = _sibling(target, "old")
    try:
        target.rename(old)
        temporary.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sibling(target: Path, role: str) -> Path:
    return target.with_name(f".{target.name}.{role}-{uuid.uuid4().hex[:12]}")
