"""The loss of words, which criterions with a second loss share."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import nll_loss


def losses_of_words(model: Any, output: Any, target: Tensor, padding_idx: int) -> Tensor:
    """-log p of each word, (B, n), 0 for padding."""
    log_probs = model.get_normalized_probs(output, log_probs=True)
    losses = nll_loss(log_probs.flatten(0, 1), target.flatten(), ignore_index=padding_idx, reduction="none")
    return losses.view_as(target)
