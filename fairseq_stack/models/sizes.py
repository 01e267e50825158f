"""Refuse models that this machine cannot train, before their memory is allocated."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer

MEMORY_LIMIT = "FAIRSEQ_STACK_MEMORY_LIMIT"
"""The environment variable that sets the limit, in GiB, instead of the machine's memory."""

BYTES_A_PARAMETER = 16
"""In training with Adam in float32: the parameter, its gradient, and the averages of the gradient and of its square."""


class Side(NamedTuple):
    """An encoder or a decoder.

    Attributes:
        flag: the option that gives its layer list.
        layers: the attention of its layers.
        model_size: d_model.
        hidden_size: the hidden size of the feedforward sublayers.
        num_embeddings: the rows of its own tables: embeddings and, if it is another table, the output layer.
        attends_to_encoder: whether its layers have cross-attention.
    """

    flag: str
    layers: Sequence[Layer]
    model_size: int
    hidden_size: int
    num_embeddings: int
    attends_to_encoder: bool = False

    def num_parameters(self) -> int:
        """How many parameters it has; the small ones (biases, layer norm) are left out."""
        size = self.model_size
        each = 2 * size * self.hidden_size + (4 * size**2 if self.attends_to_encoder else 0)
        layers = sum(layer.num_weights(size) + each for layer in self.layers)
        return layers + self.num_embeddings * size


class Recurrent(NamedTuple):
    """An LSTM with stacks.

    Attributes:
        flag: the option that gives its stacks.
        stacks: the stacks.
        input_size: the size of its input.
        hidden_size: the size of its hidden state.
        num_embeddings: how many weights the embeddings and the output layer have.
    """

    flag: str
    stacks: Sequence[Layer]
    input_size: int
    hidden_size: int
    num_embeddings: int

    def num_parameters(self) -> int:
        """How many parameters it has at least: of what multiplies a reading, only one of four gates is counted."""
        size = self.hidden_size
        stacks = sum(stack.num_weights(size) for stack in self.stacks)
        return 4 * size * (self.input_size + size) + stacks + self.num_embeddings


class Part(Protocol):
    """A model, or a side of it."""

    @property
    def flag(self) -> str: ...

    def num_parameters(self) -> int: ...


def require_memory(parts: Sequence[Part]) -> None:
    """Check that a model could be trained in the memory of this machine.

    Raises:
        UserError: the parameters would take more than the limit.
    """
    limit = memory_limit()
    total = sum(part.num_parameters() for part in parts)
    if limit is None or BYTES_A_PARAMETER * total <= limit:
        return
    largest = max(parts, key=lambda part: part.num_parameters())
    raise UserError(
        f"{largest.flag} and the sizes of the model: {total:,} parameters would take "
        f"{BYTES_A_PARAMETER * total / 2**30:,.0f} GiB in training ({BYTES_A_PARAMETER} bytes each with Adam); the "
        f"limit is {limit / 2**30:,.1f} GiB, the memory of this machine unless {MEMORY_LIMIT} sets another, in GiB"
    )


def memory_limit() -> float | None:
    """The limit in bytes, or None if the system does not say how much memory it has.

    Raises:
        UserError: if the environment variable is not a positive number.
    """
    given = os.environ.get(MEMORY_LIMIT)
    if given is not None:
        try:
            limit = float(given)
        except ValueError:
            limit = 0.0
        if not limit > 0:
            raise UserError(f"{MEMORY_LIMIT}: expected a positive number of GiB, got {given!r}")
        return limit * 2**30
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None
