"""The queue one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._item_state import ItemState


@dataclass(frozen=True, eq=False)
class QueueState(ItemState):
    """The queues of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    ``cumulative_strengths`` are F_t[j] = strength of item j and of all items in front of it.
    """

    @staticmethod
    def _after(strengths: Tensor, pop: Tensor, push: Tensor) -> Tensor:
        left = pad(torch.relu(strengths - pop), (1, 0))  # F_t[0] = 0
        return torch.cat([left[:, 1:], left[:, -1:] + push], 1)

    @staticmethod
    def _weights(readable: Tensor) -> Tensor:
        return readable - pad(readable[:, :-1], (1, 0))
