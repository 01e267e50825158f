"""Clear errors for checkpoints that do not fit the model."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from fairseq_stack.errors import UserError

# fairseq takes no moving average of entries with "version" in their names.
FINGERPRINT = "dictionary_version"
_MOST_CHARACTERS = 400


class CheckedLoading:
    """Mixin for fairseq models: says what is wrong when a checkpoint does not fit."""

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
