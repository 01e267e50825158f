"""``fairseq.file_io``: a file is written whole or not at all, whatever ends the process."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole

_ATTEMPTS = 3
_SECONDS_BETWEEN = 2.5
_HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.ENOENT)


@replaces("fairseq.file_io:PathManager.copy")
def copy(original: Any, src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """Copy through a temporary file, so that ``checkpoint_best.pt`` and ``checkpoint_last.pt`` stay complete.

    fairseq copies over them byte by byte: if the process is killed meanwhile, or the disk is full, an incomplete file
    replaces the old checkpoint.

    Unnecessary with a fairseq that renames copies.
    """
    from fairseq import file_io

    if file_io.IOPathManager:
        return bool(original(src_path, dst_path, overwrite))
    with open(src_path, "rb") as source:

        def copy_from_start(file: BinaryIO) -> None:
            source.seek(0)
            shutil.copyfileobj(source, file, 1 << 20)

        write_whole(dst_path, copy_from_start)
    return True


def write_whole(path: str, write: Callable[[BinaryIO], object]) -> None:
    """Write a file beside ``path`` and put it in its place, in up to three attempts, like fairseq.

    Raises:
        UserError: if the file cannot be written; ``path`` is unchanged.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            with written_whole(Path(path), beside=Path(f"{path}.tmp")) as file:
                write(file)
            return
        except Exception as error:
            failure = _of_the_system(error)
            if failure is None:
                raise
            if attempt == _ATTEMPTS or failure.errno in _HOPELESS:
                raise UserError(
                    f"cannot write the checkpoint {path}: {failure.strerror}; earlier checkpoints are "
                    "unchanged; once this is fixed, the same command continues from the last of them"
                ) from error
        time.sleep(_SECONDS_BETWEEN)


def _of_the_system(error: BaseException | None) -> OSError | None:
    """The file system's error behind an exception: torch raises other errors while it handles one."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return error
