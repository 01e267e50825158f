"""Trained models in Python: ``from_pretrained`` of every model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from fairseq_stack.errors import UserError

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub


class Pretrained:
    """Mixin for fairseq models, to be named before fairseq's class.

    Attributes:
        has_companions: tells :mod:`fairseq_stack.companions` to save what the model needs next to its checkpoints.
    """

    has_companions: ClassVar[bool] = True

    @classmethod
    def from_pretrained(
        cls,
        model_name_or_path: str | Path,
        checkpoint_file: str | None = None,
        data_name_or_path: str | Path | None = None,
        **kwargs: Any,
    ) -> Hub:
        """Load a trained model with its dictionaries, as an object that translates, samples and scores sentences.

        Args:
            model_name_or_path: a checkpoint, or the folder of checkpoints.
            checkpoint_file: the name of the checkpoint in the folder, or names separated by ``:`` for an ensemble
                (default: ``checkpoint_best.pt`` or else ``checkpoint_last.pt``).
            data_name_or_path: the folder with the dictionaries (default: the folder of the checkpoint).
            kwargs: replace options of the training run.

        Raises:
            UserError: the checkpoint or its dictionaries do not exist or do not fit together, or the checkpoint holds
                another model.
        """
        from fairseq_stack.hub.interface import load

        folder = Path(model_name_or_path)
        files = checkpoint_file or ""
        names = [files] if (folder / files).exists() else files.split(os.pathsep)
        checkpoint = os.pathsep.join(str(folder / name) for name in names)
        hub = load(checkpoint, data_name_or_path, **kwargs)
        for model in hub.models:
            if not isinstance(model, cls):
                raise UserError(f"{folder} holds a {type(model).__name__}, not a {cls.__name__}")
        return hub
