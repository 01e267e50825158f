"""Read files that users name, and write files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from fairseq_stack.errors import UserError


def read_text(path: Path) -> str:
    """The text of a file, in which every end of a line is made a line feed.

    Raises:
        UserError: it is not UTF-8.
        OSError: it cannot be read.
    """
    return _read(path, newline=None)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, which end in line feeds only; none of an empty file.

    Raises:
        UserError: it is not UTF-8.
        OSError: it cannot be read.
    """
    text = _read(path, newline="")
    return text.removesuffix("\n").split("\n") if text else []


def read_columns(*paths: Path) -> list[list[str]]:
    """The lines of files that have a line each for the same things.

    Raises:
        UserError: one is not UTF-8, or has another number of lines than the first one.
        OSError: one cannot be read.
    """
    columns = [read_lines(path) for path in paths]
    for path, column in zip(paths, columns, strict=True):
        if len(column) != len(columns[0]):
            raise UserError(f"{path} has {len(column):,} lines; expected {len(columns[0]):,}, as {paths[0]} has")
    return columns


@contextlib.contextmanager
def reading_as(what: str, path: Path) -> Iterator[None]:
    """Name the file in errors about its contents.

    Raises:
        UserError: the block finds that the file is not ``what``.
    """
    try:
        yield
    except UserError:
        raise
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise UserError(f"{path} is not {what}: {error!r}") from error


def _read(path: Path, newline: str | None) -> str:
    try:
        with open(path, encoding="utf-8-sig", newline=newline) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error


@contextlib.contextmanager
def written_whole(path: Path, beside: Path | None = None) -> Iterator[BinaryIO]:
    """Open a file beside ``path``, which becomes ``path`` when the block ends without an error.

    After an error the file is removed, and ``path`` is unchanged. A path that is neither free nor a regular
    file, such as /dev/null, is written to directly.

    Args:
        path: the file to write.
        beside: the name of the incomplete file, in the same folder (default: a hidden name that nobody else uses).

    Raises:
        UserError: the file cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            with open(path, "wb") as file:
                yield file
        else:
            path = Path(os.path.realpath(path))  # so that a link stays a link
            with _renamed_to(path, beside or _hidden_beside(path)) as file:
                yield file
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def require_writable(path: Path) -> None:
    """Raise UserError if :func:`written_whole` cannot write ``path``: before its content is computed.

    Nothing is left behind, and ``path`` is unchanged. Whether the disk has room for the content is not tested.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not path.exists() or path.is_file():
            beside = _hidden_beside(path)
            beside.touch(exist_ok=False)
            beside.unlink()
        elif not os.access(path, os.W_OK):  # opening a pipe would tell its reader that this is the end
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror or error}") from error


def _hidden_beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")


@contextlib.contextmanager
def _renamed_to(path: Path, beside: Path) -> Iterator[BinaryIO]:
    try:
        with open(beside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(beside)
        raise
