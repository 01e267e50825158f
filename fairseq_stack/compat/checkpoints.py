"""Checkpoints: why one does not fit."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_UNKNOWN_REASON = "Cannot load model parameters from checkpoint"


def say_why_a_checkpoint_does_not_fit() -> None:
    """Let ``fairseq-train`` end with the reason why it cannot continue from a checkpoint.

    fairseq replaces whatever the model says by "please ensure that the architectures match", which sends people who
    have changed a dictionary the wrong way. Unnecessary with a fairseq that passes the model's error on.
    """
    from fairseq.trainer import Trainer

    if not hasattr(Trainer.load_checkpoint, "__wrapped__"):
        Trainer.load_checkpoint = _saying_why(Trainer.load_checkpoint)


def _saying_why(load_checkpoint: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(load_checkpoint)
    def load_checkpoint_saying_why(self: Any, filename: str, *args: Any, **kwargs: Any) -> Any:
        try:
            return load_checkpoint(self, filename, *args, **kwargs)
        except Exception as error:
            reason = error.__context__
            if reason is None or not str(error).startswith(_UNKNOWN_REASON):
                raise
            raise ValueError(f"cannot continue from {filename}: {reason}") from reason

    return load_checkpoint_saying_why
