"""LSTMs with stacks, and random arguments of ``stack_lstm``."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fairseq_stack.ops import (
    ControlledAutomaton,
    ControlledStack,
    ControlledStratification,
    ControlledSuperposition,
    stack_lstm,
)

HIDDEN = 5
STACKS: dict[str, list[ControlledStack]] = {
    "none": [],
    "sup": [ControlledSuperposition(4)],
    "depth-limit": [ControlledSuperposition(3, "identity", depth_limit=2)],
    "hidden": [ControlledSuperposition(HIDDEN, "hidden")],
    "strat": [ControlledStratification(4)],
    "tanh": [ControlledStratification(3, "tanh")],
    "nd": [ControlledAutomaton(2, 3, 4)],
    "normalized": [ControlledAutomaton(3, 2, 2, "exponential", normalized=True)],
    "ns": [ControlledAutomaton(2, 3, 1, "ones")],
    "ns-2020": [ControlledAutomaton(2, 2, 1, "ones", normalized=True, original_bottom=True, states_in_reading=False)],
    "window-1": [ControlledAutomaton(2, 2, 2, window=1)],
    "window-3": [ControlledAutomaton(2, 2, 1, "ones", window=3, original_bottom=True)],
    "four": [
        ControlledSuperposition(2),
        ControlledAutomaton(1, 2, 2),
        ControlledStratification(2),
        ControlledSuperposition(20),
        ControlledAutomaton(2, 1, 3, window=2),
    ],
}
NAMES = ("gates", "recurrent", "driving", "bias", "reading", "bottoms")


def random_arguments(
    stacks: Sequence[ControlledStack],
    batch_size: int = 3,
    length: int = 6,
    hidden_size: int = HIDDEN,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    """What ``NAMES`` says, with gradients."""
    read = sum(stack.reading_size for stack in stacks)
    projected = sum(stack.num_projected for stack in stacks)
    shapes = (
        (batch_size, length, 4 * hidden_size), (4 * hidden_size, read + hidden_size), (projected, hidden_size),
        (projected,), (read,), (sum(stack.bottom_size for stack in stacks),),
    )  # fmt: skip
    return [torch.randn(shape, dtype=torch.float64).to(dtype).requires_grad_() for shape in shapes]


def outputs_of(
    stacks: Sequence[ControlledStack],
    arguments: Sequence[Tensor],
    *,
    backend: str = "native",
    kept: Tensor | None = None,
) -> Tensor:
    """``stack_lstm`` of arguments in the order of ``NAMES``."""
    gates, recurrent, *others = arguments
    return stack_lstm(gates, recurrent, stacks, *others, kept=kept, backend=backend)
