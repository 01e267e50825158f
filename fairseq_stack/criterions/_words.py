"""The losses of words and of attachments, and how they are logged, which criterions with a second loss share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fairseq import utils
from fairseq.criterions import FairseqCriterion
from fairseq.logging import metrics
from torch import Tensor
from torch.nn.functional import nll_loss

from fairseq_stack.modules import attachment_log_probabilities


class SummedCriterion(FairseqCriterion):
    """A criterion whose logging outputs are sums over words or sentences."""

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Whether the logging outputs of workers may be added up before :meth:`reduce_metrics`."""
        return True


def losses_of_words(model: Any, output: Any, target: Tensor, padding_idx: int) -> Tensor:
    """-log p of each word, (B, n), 0 for padding."""
    log_probs = model.get_normalized_probs(output, log_probs=True)
    losses = nll_loss(log_probs.flatten(0, 1), target.flatten(), ignore_index=padding_idx, reduction="none")
    return losses.view_as(target)


def losses_of_attachments(
    output: Any, sample: dict[str, Any], padding_idx: int, legal_only: bool = True
) -> tuple[Tensor, Tensor]:
    """-log p of what each word attaches to, (B, n), 0 for padding; and log p of all attachments, (B, n, m).

    Args:
        output: of a model that predicts attachments.
        sample: the batch.
        padding_idx: of the target.
        legal_only: whether the probabilities of legal attachments alone sum to 1.
    """
    legal = sample["legal_attachments"] if legal_only else None
    log_probs = attachment_log_probabilities(output[1]["attachment_scores"], legal)
    losses = -log_probs.gather(2, sample["attachments"].unsqueeze(2)).squeeze(2)
    return losses.masked_fill(sample["target"] == padding_idx, 0), log_probs


def logged_sums(sample: dict[str, Any], sample_size: int, **values: Tensor) -> dict[str, Any]:
    """What is logged of a batch: the sums of these values, and by what they may be divided."""
    sizes = {"ntokens": sample["ntokens"], "nsentences": len(sample["target"]), "sample_size": sample_size}
    return {name: value.sum().data for name, value in values.items()} | sizes


def log_losses(logging_outputs: Sequence[dict[str, Any]], *others: str) -> dict[str, Any]:
    """Log ``loss``, ``nll_loss``, the others and ``ppl`` of all workers together; return the sums."""
    totals = {name: sum(log.get(name, 0) for log in logging_outputs) for name in logging_outputs[0]}
    size, tokens = totals["sample_size"], totals["ntokens"]
    metrics.log_scalar("loss", totals["loss"] / size / math.log(2), size, round=3)
    for name in ("nll_loss", *others):
        metrics.log_scalar(name, totals[name] / tokens / math.log(2), tokens, round=3)
    metrics.log_derived("ppl", lambda meters: utils.get_perplexity(meters["nll_loss"].avg))
    return totals
