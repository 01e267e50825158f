"""Output folders that appear complete or not at all."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TextIO

from ..errors import PrepareError
from ..layout import DATA_BIN, MANIFEST_NAME, TEXT, VOCABULARY_NAME
from .binarise import require_fairseq

LOG = f"{DATA_BIN}/preprocess.log"
"""fairseq-preprocess writes this file whenever it runs; nothing else writes it."""

MOST_NAMES = 5


def create_text(path: Path) -> TextIO:
    """Open a new file of text, in UTF-8 with line feeds on every platform."""
    return open(path, "w", encoding="utf-8", newline="\n")


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write ``lines`` as UTF-8 with a line feed after each, on every platform."""
    with create_text(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def write_alphabet(folder: Path, symbols: Iterable[str]) -> Path:
    """Write the dictionary of a generated text, all symbols in this order, and return its path."""
    path = folder / TEXT / VOCABULARY_NAME
    write_lines(path, (f"{symbol} 1" for symbol in symbols))
    return path


def write_columns(paths: Iterable[Path], rows: Iterable[Iterable[str]]) -> int:
    """Write files of which each line belongs to the same line of the others; return the number of lines.

    A row has the line of each file.
    """
    number = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(create_text(path)) for path in paths]
        for row in rows:
            for file, line in zip(files, row, strict=True):
                file.write(f"{line}\n")
            number += 1
    return number


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
    """Yield a folder in a hidden one beside ``target``; it becomes ``target`` when the block ends without error.

    If the block raises (KeyboardInterrupt included) the hidden folder and any parent folders made for it are
    removed, and ``target`` is unchanged. With ``force`` an existing ``target`` stays in place until the new folder is
    complete.

    Raises:
        PrepareError: ``target`` exists and ``force`` is not given; ``force`` is given but ``target`` is not a folder,
            or holds anything except a corpus; no folder can be made next to it; or the block fails to write a file.
    """
    target = Path(os.path.realpath(target))
    _check_existing(target, force)
    missing = [parent for parent in target.parents if not os.path.lexists(parent)]
    hidden = target.parent / f".{target.name[:40]}.partial-{secrets.token_hex(4)}"
    new, old = hidden / "new", hidden / "old"
    try:
        try:
            new.mkdir(parents=True)
        except OSError as error:
            raise PrepareError(f"cannot make a folder in {target.parent}: {error.strerror}") from error
        yield new
        _check_existing(target, force)  # once more: the work may have taken hours
        if os.path.lexists(target):
            target.rename(old)
        new.rename(target)
    except OSError as error:
        if error.filename is None and error.strerror:  # such as a full disk
            raise PrepareError(f"cannot write {target}: {error.strerror}") from error
        raise
    finally:
        if os.path.lexists(old) and not os.path.lexists(target):
            old.rename(target)
        shutil.rmtree(hidden, ignore_errors=True)
        for parent in missing:
            with contextlib.suppress(OSError):  # it has the new folder in it
                parent.rmdir()


def _check_existing(target: Path, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise PrepareError(f"{target} already exists; give --force to replace it")
    if not target.is_dir():
        raise PrepareError(f"{target} is not a folder; --force replaces folders only")
    if any(target.iterdir()):
        _check_replaceable(target)


def _check_replaceable(folder: Path) -> None:
    """Raise PrepareError unless ``folder`` has the manifest of a corpus, and no files that it does not list."""
    try:
        outputs = set(json.loads((folder / MANIFEST_NAME).read_bytes())["outputs"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PrepareError(
            f"{folder} is not a folder that fairseq-stack prepare wrote; --force replaces only such folders"
        ) from error
    files = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    names = [name for file in files if (name := file.relative_to(folder).as_posix()) not in outputs]
    others = [name for name in names if name not in (MANIFEST_NAME, LOG)]
    if others:
        more = f" and {len(others) - MOST_NAMES} more" if len(others) > MOST_NAMES else ""
        raise PrepareError(
            f"--force would delete files in {folder} that are not part of the corpus written there: "
            f"{', '.join(others[:MOST_NAMES])}{more}; move them elsewhere, or choose another folder"
        )
