"""Which stacks of a model ``fairseq-stack inspect`` shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from fairseq_stack.errors import UserError


class OfStack(Protocol):
    """What is known about a stack."""

    @property
    def layer(self) -> str:
        """The layer's name in the model."""

    @property
    def is_automaton(self) -> bool:
        """Whether it is a nondeterministic stack."""


Stack = TypeVar("Stack", bound=OfStack)


def chosen(stacks: Sequence[Stack], checkpoint: Path, layer: str | None) -> Sequence[Stack]:
    """The stacks that ``--layer`` names.

    Raises:
        UserError: there is none.
    """
    if not stacks:
        raise UserError(f"{checkpoint} has no nondeterministic stack attention, and no other stack")
    if layer is None:
        return [stack for stack in stacks if stack.is_automaton] or stacks
    found = [stack for stack in stacks if layer in ("all", stack.layer)]
    if not found:
        names = ", ".join(stack.layer for stack in stacks)
        raise UserError(f"--layer {layer}: expected 'all' or a stack of the model, which are {names}")
    return found
