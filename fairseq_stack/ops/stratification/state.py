"""The stratification stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._item_state import ItemState


@dataclass(frozen=True, eq=False)
class StratificationStackState(ItemState):
    """The stacks of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    ``cumulative_strengths`` are H_t[i] = strength of item i and of all items above it.
    """

    @staticmethod
    def _after(strengths: Tensor, pop: Tensor, push: Tensor) -> Tensor:
        return pad(torch.relu(strengths - pop), (0, 1)) + push

    @staticmethod
    def _weights(readable: Tensor) -> Tensor:
        return readable - pad(readable[:, 1:], (0, 1))
