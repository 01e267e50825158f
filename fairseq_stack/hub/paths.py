"""Where the checkpoints, the dictionaries and the user's package of a trained model are: ``--user-dir`` of fairseq."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path

from fairseq import checkpoint_utils, utils

from fairseq_stack.companions import DICTIONARIES
from fairseq_stack.errors import UserError, reason_of
from fairseq_stack_preprocess.layout import DATA_BIN

CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
"""The checkpoints that are looked for in a folder; the first that exists is loaded."""

_OWN = "fairseq_stack"


def checkpoints_at(checkpoint: str | Path) -> list[Path]:
    """The files of a checkpoint, or of an ensemble: several checkpoints separated by ``:``, unless a file has that
    name. A folder stands for one of its :data:`CHECKPOINTS`.

    Raises:
        UserError: a file does not exist, or a folder has no checkpoint.
    """
    name = os.fspath(checkpoint)
    names = [name] if os.path.exists(name) else name.split(os.pathsep)
    return [_checkpoint_at(Path(path)) for path in names]


def _checkpoint_at(path: Path) -> Path:
    if not path.is_dir():
        if not path.is_file():
            raise UserError(f"{path} does not exist")
        return path
    for name in CHECKPOINTS:
        if (path / name).is_file():
            return path / name
    raise UserError(f"{path} has neither {' nor '.join(CHECKPOINTS)}; name a checkpoint")


def folder_of_dictionaries(checkpoint: Path, data: Path | None) -> Path:
    """The dictionaries' folder: of ``data``, or next to a checkpoint or, if it has none there, of its training data.

    Raises:
        UserError: the folder has no dictionary, or ``:`` in its name.
    """
    folder = _beside_or_of_training(checkpoint) if data is None else data_bin_of(data)
    if not any(folder.glob(DICTIONARIES)):
        raise UserError(f"{folder} has no dictionary ({DICTIONARIES}); expected the folder of the model's data")
    if os.pathsep in str(folder):
        raise UserError(
            f"{folder} has {os.pathsep!r} in its name, at which fairseq splits lists of folders; rename it, or "
            "name another folder with the dictionaries (--data)"
        )
    return folder


def data_bin_of(corpus: Path) -> Path:
    """The binarised data of a corpus of ``fairseq-stack prepare``; any other folder itself."""
    return corpus / DATA_BIN if (corpus / DATA_BIN).is_dir() else corpus


def _beside_or_of_training(checkpoint: Path) -> Path:
    if any(checkpoint.parent.glob(DICTIONARIES)):
        return checkpoint.parent
    state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))
    data = Path(utils.split_paths(state["cfg"].task.data)[0])
    if not any(data.glob(DICTIONARIES)):
        raise UserError(
            f"{checkpoint.parent} has no dictionary ({DICTIONARIES}), and neither does the folder of its training "
            f"data, {data}; copy the dictionaries next to the checkpoint, or name the folder that holds them"
        )
    return data


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
        raise UserError(f"--user-dir {folder} cannot be imported: {reason_of(error)}") from error


def import_packages(user_dir: Path | None, checkpoint: Path) -> None:
    """Import the package of the user that a model needs: the one in ``user_dir``, or else the one it was trained with.

    The latter is said on standard error, also where its folder no longer exists.

    Raises:
        UserError: the package or the checkpoint does not exist, or cannot be imported or read.
    """
    if user_dir is not None:
        import_user_dir(user_dir)
        return
    for path in checkpoints_at(checkpoint):
        cfg = checkpoint_utils.load_checkpoint_to_cpu(str(path)).get("cfg")
        folder = Path((cfg and cfg.common.user_dir) or _OWN)
        if folder.name == _OWN:
            continue
        trained = f"{path} was trained with --user-dir {folder}"
        if folder.is_dir():
            print(f"{trained}: importing it", file=sys.stderr)
            import_user_dir(folder)
        else:
            print(f"{trained}, which does not exist; if the model needs it, give --user-dir", file=sys.stderr)
