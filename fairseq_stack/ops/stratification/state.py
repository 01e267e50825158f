"""The stratification stack one step at a time."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._arguments import without_autocast
from .._item_state import ItemState
from . import _native_step


@dataclass(frozen=True, eq=False)
class StratificationStackState(ItemState):
    """The stacks of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    ``cumulative_strengths`` are H_t[i] = strength of item i and of all items above it. On the CPU a step that reads the
    strength 1 runs on the compiled kernels, unless ``torch.func`` transforms it.
    """

    _native: ClassVar[ModuleType | None] = _native_step

    @staticmethod
    def _advance(
        strengths: Tensor, pop: Tensor, push: Tensor, vectors: Tensor, read_strength: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """A step in plain PyTorch: the reading (B, m), and H_t (B, t), from H_{t-1} and v_1..v_t (B, t, m)."""
        after = pad(torch.relu(strengths - pop.unsqueeze(1)), (0, 1)) + push.unsqueeze(1)
        readable = after.clamp(max=1) if read_strength is None else after.clamp(max=read_strength.unsqueeze(1))
        weights = readable - pad(readable[:, 1:], (0, 1))
        with without_autocast(vectors.device):
            return torch.bmm(weights.unsqueeze(1), vectors).squeeze(1), after
