"""Packages of users, such as those that register kinds of stacks: what ``--user-dir`` of fairseq imports."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from fairseq import checkpoint_utils, utils

from fairseq_stack.errors import UserError
from fairseq_stack.hub.paths import checkpoints_at

_OWN = "fairseq_stack"


def import_user_dir(folder: Path) -> None:
    """Import the package in a folder, unless that was done before.

    Raises:
        UserError: the folder does not exist, or the package cannot be imported.
    """
    if not folder.is_dir():
        raise UserError(f"--user-dir {folder}: expected the folder of a package")
    try:
        utils.import_user_module(Namespace(user_dir=str(folder)))
    except Exception as error:  # the package may raise exceptions of every kind
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise UserError(f"--user-dir {folder} cannot be imported: {reason}") from error


def import_packages(user_dir: Path | None, checkpoint: Path) -> None:
    """Import the package of the user that a model needs: the one in ``user_dir``, or else the one it was trained with.

    Raises:
        UserError: the package or the checkpoint does not exist, or cannot be imported or read.
    """
    if user_dir is not None:
        import_user_dir(user_dir)
    else:
        import_recorded_user_dirs(checkpoints_at(checkpoint))


def import_recorded_user_dirs(checkpoints: Sequence[Path]) -> None:
    """Import the packages with which models were trained, where their folders still exist, and say so on stderr.

    Raises:
        UserError: a checkpoint cannot be read, or a package cannot be imported.
    """
    for checkpoint in checkpoints:
        cfg = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint)).get("cfg")
        folder = Path((cfg and cfg.common.user_dir) or _OWN)
        if folder.name == _OWN:
            continue
        trained = f"{checkpoint} was trained with --user-dir {folder}"
        if folder.is_dir():
            print(f"{trained}: importing it", file=sys.stderr)
            import_user_dir(folder)
        else:
            print(f"{trained}, which does not exist; if the model needs it, give --user-dir", file=sys.stderr)
