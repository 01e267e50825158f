"""The state that a model carries from segment to segment of a stream, and its form in checkpoints."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NoReturn

from torch import Tensor

from fairseq_stack.errors import UserError


class CarriedStates:
    """The states between the segments that are being read.

    The states before the segments of an update are kept until the next update begins: fairseq computes segments again
    after an overflow or if memory runs out.

    Attributes:
        latest: the segment that comes next, and the state before it; None if nothing has been read.
    """

    def __init__(self) -> None:
        self.latest: tuple[int, Any] | None = None
        self._states: dict[int, Any] = {}
        self._update: int | None = None

    def before(self, segment: int, update: int) -> Any:
        """The state before a segment that is read for an update; None before the first segment.

        Raises:
            KeyError: the state is not known.
        """
        if update != self._update:
            self._update = update
            self._states = {number: state for number, state in self._states.items() if number == segment}
        return None if segment == 0 else self._states[segment]

    def keep(self, segment: int, state: Any) -> None:
        """Keep the state before a segment."""
        self._states[segment] = state
        self.latest = segment, state


class Carrying:
    """A model as a criterion calls it, which begins with a state and keeps the state after the last token.

    Args:
        model: the model, possibly wrapped for several workers; its output has the state under ``"state"``.
        state: the state to begin with.
    """

    def __init__(self, model: Any, state: Any) -> None:
        self.model = model
        self.state = state

    def __call__(self, **net_input: Any) -> Any:
        output = self.model(**net_input, state=self.state)
        self.state = output[1]["state"].detach()
        return output

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def as_plain(state: Any) -> Any:
    """A state of dataclasses and named tuples as dictionaries, lists and tensors on the CPU, for a checkpoint."""
    if isinstance(state, Tensor):
        return state.detach().cpu().clone()  # a clone has no more memory than it needs
    if (fields := _fields(state)) is not None:
        return {name: as_plain(item) for name, item in fields.items()}
    if isinstance(state, tuple):
        return [as_plain(item) for item in state]
    return state


def from_plain(plain: Any, like: Any) -> Any:
    """The state that :func:`as_plain` made plain.

    Args:
        plain: what :func:`as_plain` returned.
        like: a state of the same model after at least one step, whose classes and devices the state gets.

    Raises:
        UserError: the two are not of one kind.
    """
    if isinstance(like, Tensor):
        if not isinstance(plain, Tensor) or plain.dim() != like.dim():
            _refuse(plain, like)
        return plain.to(like.device)
    if (fields := _fields(like)) is not None:
        if not isinstance(plain, dict) or plain.keys() != fields.keys():
            _refuse(plain, like)
        restored = {name: from_plain(plain[name], item) for name, item in fields.items()}
        make = type(like) if isinstance(like, tuple) else partial(dataclasses.replace, like)
        return make(**restored)
    if isinstance(like, tuple):
        if not isinstance(plain, list) or bool(plain) != bool(like):
            _refuse(plain, like)
        # What grows with the steps, such as a tuple of columns, is all of one kind.
        return tuple(from_plain(item, like[min(place, len(like) - 1)]) for place, item in enumerate(plain))
    if type(plain) is not type(like) or (isinstance(like, str) and plain != like):
        _refuse(plain, like)
    return plain


def _fields(state: Any) -> dict[str, Any] | None:
    """What a dataclass or a named tuple holds, without private fields; None of anything else."""
    if isinstance(state, tuple) and hasattr(state, "_asdict"):
        fields: dict[str, Any] = state._asdict()
        return fields
    if not dataclasses.is_dataclass(state) or isinstance(state, type):
        return None
    names = [field.name for field in dataclasses.fields(state)]
    return {name: getattr(state, name) for name in names if not name.startswith("_")}


def _refuse(plain: Any, like: Any) -> NoReturn:
    raise UserError(
        "the checkpoint has a state within an epoch that this model on this machine cannot continue from: expected "
        f"{_kind(like)}, got {_kind(plain)}; resume with the options and on a machine of the kind that it was trained "
        "with, or begin an epoch with --reset-dataloader"
    )


def _kind(item: Any) -> str:
    if isinstance(item, Tensor):
        return f"a tensor of {item.dim()} dimensions"
    return repr(item) if isinstance(item, str) else f"a {type(item).__name__}"
