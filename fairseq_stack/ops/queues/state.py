"""The queue one step at a time."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._arguments import without_autocast
from .._item_state import ItemState


@dataclass(frozen=True, eq=False)
class QueueState(ItemState):
    """The queues of a batch after t steps. Immutable; autograd and ``torch.func`` transform its steps.

    ``cumulative_strengths`` are F_t[j] = strength of item j and of all items in front of it.
    """

    @staticmethod
    def _advance(
        strengths: Tensor, pop: Tensor, push: Tensor, vectors: Tensor, read_strength: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """A step in plain PyTorch: the reading (B, m), and F_t (B, t), from F_{t-1} and v_1..v_t (B, t, m)."""
        with without_autocast(vectors.device):
            left = pad(torch.relu(strengths - pop.unsqueeze(1)), (1, 0))  # F_t[0] = 0
            after = torch.cat([left[:, 1:], left[:, -1:] + push.unsqueeze(1)], 1)
            readable = after.clamp(max=1) if read_strength is None else after.clamp(max=read_strength.unsqueeze(1))
            weights = readable - pad(readable[:, :-1], (1, 0))
            return torch.bmm(weights.unsqueeze(1), vectors).squeeze(1), after
