"""Refuse models that this machine cannot train, before their memory is allocated."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fairseq_stack.compat.models import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer
from fairseq_stack.modules.stack_lstm import NUM_GATES

MEMORY_LIMIT = "FAIRSEQ_STACK_MEMORY_LIMIT"
"""The environment variable that sets the limit, in GiB, instead of the machine's memory."""

BYTES_A_PARAMETER = 16
"""In training with Adam in float32: the parameter, its gradient, and the averages of the gradient and of its square."""


def num_transformer_weights(
    layers: Sequence[Layer], model_size: int, hidden_size: int, attends_to_encoder: bool = False
) -> int:
    """How many weights layers have, with feedforward sublayers; biases and layer norm are left out."""
    each = 2 * model_size * hidden_size + (4 * model_size**2 if attends_to_encoder else 0)
    return sum(layer.num_weights(model_size) + each for layer in layers)


def num_lstm_weights(
    stacks: Sequence[Layer], input_size: int, hidden_size: int, num_layers: int = 1, controller: str = "lstm"
) -> int:
    """How many weights an LSTM with stacks has at least: what multiplies a reading is counted for one of four gates."""
    num_inputs = input_size + hidden_size + (num_layers - 1) * 2 * hidden_size
    return NUM_GATES[controller] * hidden_size * num_inputs + sum(stack.num_weights(hidden_size) for stack in stacks)


def require_memory(num_weights: Mapping[str, int]) -> None:
    """Check that a new model could be trained in the memory of this machine.

    Args:
        num_weights: how many weights the parts of the model have, by the flags that set their sizes.

    Raises:
        UserError: the parameters would take more than the limit.
    """
    limit = None if is_from_checkpoint() else memory_limit()
    total = sum(num_weights.values())
    if limit is None or BYTES_A_PARAMETER * total <= limit:
        return
    largest = max(num_weights, key=lambda flag: num_weights[flag])
    raise UserError(
        f"{largest} and the sizes of the model: {total:,} parameters would take "
        f"{BYTES_A_PARAMETER * total / 2**30:,.0f} GiB in training ({BYTES_A_PARAMETER} bytes each with Adam); the "
        f"limit is {limit / 2**30:,.1f} GiB, the memory of this machine unless {MEMORY_LIMIT} sets another, in GiB"
    )


def memory_limit() -> float | None:
    """The limit in bytes, or None if the system does not say how much memory it has.

    Raises:
        UserError: if the environment variable is not a positive number.
    """
    named = os.environ.get(MEMORY_LIMIT)
    if named is not None:
        try:
            limit = float(named)
        except ValueError:
            limit = 0.0
        if not limit > 0:
            raise UserError(f"{MEMORY_LIMIT}: expected a positive number of GiB, got {named!r}")
        return limit * 2**30
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return None
