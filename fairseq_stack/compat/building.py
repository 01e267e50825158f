"""Whether a model is built for training or from a checkpoint, since fairseq does not say so to the model."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from fairseq_stack.compat.wrapping import Function, wrap_once

_FROM_CHECKPOINT = ContextVar("from_checkpoint", default=False)


def is_from_checkpoint() -> bool:
    """Whether the model that is being built comes from a checkpoint, with the options that it was trained with."""
    return _FROM_CHECKPOINT.get()


def note_what_a_model_is_built_for() -> None:
    """Record for :func:`is_from_checkpoint` what each model is built for.

    Options are checked only when a model is new: the version that trained a checkpoint has checked its options.
    Unnecessary with a fairseq that passes ``from_checkpoint`` on to ``build_model`` of the model.
    """
    from fairseq import models

    wrap_once(models, "build_model", _noting)


def _noting(build_model: Function) -> Function:
    def build_model_noting(cfg: Any, task: Any, from_checkpoint: bool = False) -> Any:
        token = _FROM_CHECKPOINT.set(from_checkpoint)
        try:
            return build_model(cfg, task, from_checkpoint)
        finally:
            _FROM_CHECKPOINT.reset(token)

    return build_model_noting
