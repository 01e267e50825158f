"""Checkpoints are written whole or not at all, whatever ends the process."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import torch

from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError
from fairseq_stack.files import written_whole

_ATTEMPTS = 3
_SECONDS_BETWEEN = 2.5
_HOPELESS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.ENOENT)


def write_checkpoints_whole() -> None:
    """Keep every file with the name of a checkpoint complete at every moment.

    fairseq copies a new checkpoint over ``checkpoint_best.pt`` and ``checkpoint_last.pt`` byte by byte. If the process
    is killed meanwhile, or the disk is full, an incomplete file replaces the old checkpoint. If writing fails, fairseq
    tries again, and appends to what it has already written. Here each file is written beside its place and renamed when
    it is on the disk. Files that an earlier process left unfinished are removed at the start.

    To see whether it can write to the folder, fairseq overwrites and removes a file ``dummy`` there, which may be the
    user's. Here the file is a temporary one.

    Unnecessary with a fairseq that also renames copies, begins a second attempt with an empty file, and overwrites no
    file of the user.
    """
    from fairseq import checkpoint_utils
    from fairseq.file_io import PathManager

    wrap_once(checkpoint_utils, "torch_persistent_save", _saving_whole)
    checkpoint_utils.verify_checkpoint_directory = _verify_checkpoint_directory
    PathManager.copy = staticmethod(_copy_whole)


def _saving_whole(torch_persistent_save: Function) -> Function:
    def save_whole(obj: object, filename: str, async_write: bool = False) -> None:
        from fairseq.file_io import PathManager

        if async_write or PathManager.path_requires_pathmanager(filename):
            torch_persistent_save(obj, filename, async_write)
        else:
            _write_whole(filename, lambda file: torch.save(obj, file))

    return save_whole


def _copy_whole(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
    """``PathManager.copy``, through a file beside ``dst_path``."""
    from fairseq import file_io

    if file_io.IOPathManager:
        return bool(file_io.IOPathManager.copy(src_path=src_path, dst_path=dst_path, overwrite=overwrite))
    with open(src_path, "rb") as source:

        def copy(file: BinaryIO) -> None:
            source.seek(0)
            shutil.copyfileobj(source, file, 1 << 20)

        _write_whole(dst_path, copy)
    return True


def _write_whole(path: str, write: Callable[[BinaryIO], object]) -> None:
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


def _verify_checkpoint_directory(save_dir: str) -> None:
    """``checkpoint_utils.verify_checkpoint_directory``, which also removes unfinished files of an earlier process.

    Raises:
        UserError: if the folder cannot be made, or no file can be made in it.
    """
    try:
        if not os.path.exists(save_dir):
            os.makedirs(save_dir, exist_ok=True)
        tempfile.TemporaryFile(dir=save_dir).close()
    except OSError as error:
        raise UserError(f"--save-dir {save_dir}: {error.strerror}") from error
    for unfinished in Path(save_dir).glob("checkpoint*.pt.tmp"):
        unfinished.unlink(missing_ok=True)
