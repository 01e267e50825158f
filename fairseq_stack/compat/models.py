"""``fairseq.models``: whether a model is built for training or from a checkpoint."""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import ContextVar
from typing import Any

from fairseq_stack.compat.replacing import replaces

_FROM_CHECKPOINT = ContextVar("from_checkpoint", default=False)


def is_from_checkpoint() -> bool:
    """Whether the model that is being built comes from a checkpoint, with the options that it was trained with."""
    return _FROM_CHECKPOINT.get()


@replaces("fairseq.models:build_model")
def build_model(original: Any, cfg: Any, task: Any, from_checkpoint: bool = False) -> Any:
    """Check the options of new models only, and have checkpoints name what a new model decides, such as GPT-2's sizes.

    The options of a checkpoint were checked by the version that trained it. A model names what it decides in its
    ``decided_options``; fairseq builds it from a copy of the options that it saves.

    For stack models. Unnecessary with a fairseq that passes ``from_checkpoint`` to the model's ``build_model``, and
    builds models from the options that it saves.
    """
    from omegaconf import OmegaConf, open_dict

    token = _FROM_CHECKPOINT.set(from_checkpoint)
    try:
        model = original(cfg, task, from_checkpoint)
    finally:
        _FROM_CHECKPOINT.reset(token)
    with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
        for name, value in getattr(model, "decided_options", {}).items():
            setattr(cfg, name, value)
    return model
