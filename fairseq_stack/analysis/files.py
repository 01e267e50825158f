"""Read files that users name, and write files that appear complete or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import AnalysisError


def read_text(path: Path) -> str:
    """The text of a file.

    Raises:
        AnalysisError: it is not UTF-8.
        OSError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise AnalysisError(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from error


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path``; what is written there becomes ``path`` when the block ends without error.

    A path that is not a regular file, such as /dev/null, is yielded itself.

    Raises:
        AnalysisError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part") if path.is_file() or not path.exists() else path
    try:
        yield part
        if part != path:
            os.replace(part, path)
    except OSError as error:
        raise AnalysisError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if part != path:
            part.unlink(missing_ok=True)
