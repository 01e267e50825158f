"""Why a checkpoint cannot be read, and why it does not fit."""

from __future__ import annotations

import os
import pickle
import zipfile
from typing import Any

import torch

from fairseq_stack.compat.wrapping import Function, wrap_once
from fairseq_stack.errors import UserError

_UNKNOWN_REASON = "Cannot load model parameters from checkpoint"


def say_why_a_checkpoint_does_not_fit() -> None:
    """Let ``fairseq-train`` end with the reason why it cannot continue from a checkpoint.

    fairseq replaces the model's error by "please ensure that the architectures match", which misleads users who
    have changed a dictionary. Unnecessary with a fairseq that passes the model's error on.
    """
    from fairseq.trainer import Trainer

    wrap_once(Trainer, "load_checkpoint", _saying_why)


def _saying_why(load_checkpoint: Function) -> Function:
    def load_checkpoint_saying_why(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except Exception as error:
            reason = error.__context__
            if reason is None or not str(error).startswith(_UNKNOWN_REASON):
                raise
            raise UserError(f"cannot continue from {filename}: {reason}") from reason

    return load_checkpoint_saying_why


def refuse_to_restore_nothing() -> None:
    """Refuse a ``--restore-file`` that does not exist, instead of silently starting a new training run.

    Unnecessary with a fairseq that starts anew only if the default file, ``checkpoint_last.pt``, is missing.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_checkpoint", _restoring_something)


def _restoring_something(load_checkpoint: Function) -> Function:
    def load_checkpoint_if_there(cfg: Any, *args: Any, **kwargs: Any) -> Any:
        from fairseq.file_io import PathManager

        path = cfg.restore_file
        if path != "checkpoint_last.pt" and not PathManager.isfile(path):
            problem = "is a folder; give a file in it" if os.path.isdir(path) else "does not exist"
            raise UserError(f"--restore-file {path}: {path} {problem}, or leave the option out to start afresh")
        return load_checkpoint(cfg, *args, **kwargs)

    return load_checkpoint_if_there


def say_why_a_checkpoint_cannot_be_read() -> None:
    """Name a file that is not a checkpoint, and say what it is instead.

    torch and fairseq say ``EOFError``, ``KeyError: 101`` or "Invalid argument", without naming the file. Unnecessary
    with a fairseq that checks what it loads.
    """
    from fairseq import checkpoint_utils

    wrap_once(checkpoint_utils, "load_checkpoint_to_cpu", _naming_the_file)


def _naming_the_file(load_checkpoint_to_cpu: Function) -> Function:
    def load_checkpoint_naming_the_file(path: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint_to_cpu(path, *args, **kwargs)
        except Exception as error:
            problem = _problem_of(path)
            if problem is None:
                raise
            raise UserError(f"{path} is not a checkpoint of fairseq: {problem}") from error

    return load_checkpoint_naming_the_file


def _problem_of(path: str) -> str | None:
    """What is wrong with a file from which no checkpoint could be loaded, or None if it looks like one."""
    if os.path.isdir(path):
        return "it is a folder; give a file in it, such as checkpoint_best.pt"
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        beginning = file.read(1024)
    if not beginning:
        return "it is empty"
    if beginning.startswith(b"PK") and not zipfile.is_zipfile(path):
        return f"it is truncated after {os.path.getsize(path):,} bytes; an earlier checkpoint may be complete"
    if not beginning.startswith((b"PK", b"\x80")):
        return "it is a file of another kind"
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        return "it holds more than tensors and plain values, and loading it could run arbitrary code"
    except Exception as error:
        return f"torch cannot load it ({type(error).__name__})"
    if not isinstance(state, dict) or not {"model", "extra_state"} <= state.keys():
        return "it was saved by torch, but holds something else"
    return None
