"""``fairseq.models``: whether a model is built for training or from a checkpoint."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from fairseq_stack.compat.replacing import replaces

_FROM_CHECKPOINT = ContextVar("from_checkpoint", default=False)


def is_from_checkpoint() -> bool:
    """Whether the model that is being built comes from a checkpoint, with the options that it was trained with."""
    return _FROM_CHECKPOINT.get()


@replaces("fairseq.models:build_model")
def build_model(original: Any, cfg: Any, task: Any, from_checkpoint: bool = False) -> Any:
    """Check the options of new models only: those of a checkpoint were checked by the version that trained it.

    For stack models. Unnecessary with a fairseq that passes ``from_checkpoint`` to the model's ``build_model``.
    """
    token = _FROM_CHECKPOINT.set(from_checkpoint)
    try:
        return original(cfg, task, from_checkpoint)
    finally:
        _FROM_CHECKPOINT.reset(token)
