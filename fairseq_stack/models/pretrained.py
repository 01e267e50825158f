"""Trained models: how every model is loaded, and what is wrong with a checkpoint that does not fit it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.vocabulary import FINGERPRINT

if TYPE_CHECKING:
    from fairseq_stack.hub.interface import Hub

_MOST_CHARACTERS = 400


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
            data_name_or_path: a corpus of fairseq-stack prepare, or the folder with the dictionaries (default: the
                folder of the checkpoint).
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

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], strict: bool = True, model_cfg: Any = None, args: Any = None
    ) -> Any:
        """Load parameters as fairseq does.

        Raises:
            UserError: if the checkpoint has another vocabulary or another architecture.
        """
        assert isinstance(self, nn.Module)
        problem = _other_vocabulary(self.state_dict(), state_dict)
        if problem is not None:
            raise UserError(problem)
        try:
            return super().load_state_dict(state_dict, strict, model_cfg, args)  # type: ignore[misc]
        except RuntimeError as error:
            problem = textwrap.shorten(str(error), _MOST_CHARACTERS)  # it names all parameters
            raise UserError(f"the checkpoint has another architecture: {problem}") from error


def _other_vocabulary(ours: Mapping[str, Tensor], loaded: Mapping[str, Tensor]) -> str | None:
    sides = _sides(ours)
    if sides != _sides(loaded):  # not even of the same kind of model
        return None
    for side in sides:
        name = f"{side}.{FINGERPRINT}"
        if int(ours[name]) != int(loaded[name]):
            which = {"encoder": "source ", "decoder": "target "}[side] if len(sides) > 1 else ""
            return (
                f"the checkpoint's {which}vocabulary differs from the data's: {_difference(ours, loaded, side)}; "
                "use the dictionary that the model was trained with (give its dict.txt or dict.*.txt to "
                "fairseq-preprocess as --srcdict and --tgtdict)"
            )
    return None


def _sides(state: Mapping[str, Tensor]) -> list[str]:
    """The parts of a model that have a dictionary: encoder, decoder, both or, in other models, none."""
    return [side for side in ("encoder", "decoder") if f"{side}.{FINGERPRINT}" in state]


def _difference(ours: Mapping[str, Tensor], loaded: Mapping[str, Tensor], side: str) -> str:
    table = f"{side}.embed_tokens.weight"
    expected, got = (len(state[table]) if table in state else None for state in (loaded, ours))
    if expected == got:
        return "it has different symbols, or the same symbols in another order"
    return f"expected {expected} embeddings, got {got}"
