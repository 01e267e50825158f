"""The loss of words, and how it is logged, which criterions with a second loss share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairseq import utils
from fairseq.logging import metrics
from torch import Tensor
from torch.nn.functional import nll_loss


def losses_of_words(model: Any, output: Any, target: Tensor, padding_idx: int) -> Tensor:
    """-log p of each word, (B, n), 0 for padding."""
    log_probs = model.get_normalized_probs(output, log_probs=True)
    losses = nll_loss(log_probs.flatten(0, 1), target.flatten(), ignore_index=padding_idx, reduction="none")
    return losses.view_as(target)


def log_losses(logging_outputs: Sequence[dict[str, Any]], second: str) -> dict[str, Any]:
    """Log ``loss``, ``nll_loss``, the second loss and ``ppl`` of all workers together; return the sums."""
    totals = {name: sum(log.get(name, 0) for log in logging_outputs) for name in logging_outputs[0]}
    size, tokens = totals["sample_size"], totals["ntokens"]
    metrics.log_scalar("loss", totals["loss"] / size / math.log(2), size, round=3)
    for name in ("nll_loss", second):
        metrics.log_scalar(name, totals[name] / tokens / math.log(2), tokens, round=3)
    metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
    return totals
