"""``--criterion transduction``: cross-entropy and accuracy of the scored symbols of transductions.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from fairseq.tasks import FairseqTask
from torch import Tensor
from torch.nn.functional import cross_entropy

from fairseq_stack.criterions._words import SummedCriterion

POSITION_MEAN_SUM, SUM = "position_mean_sum", "sum"
REDUCTIONS = ChoiceEnum([POSITION_MEAN_SUM, SUM])


@dataclass
class TransductionCriterionConfig(FairseqDataclass):
    """How the losses of the scored symbols of a batch become one loss."""

    reduction: REDUCTIONS = field(  # type: ignore[valid-type]
        default=POSITION_MEAN_SUM,
        metadata={
            "help": "the loss of a batch: the mean over the strings that are scored at each position, summed over "
            "positions; or the sum over strings and positions"
        },
    )


@register_criterion("transduction", dataclass=TransductionCriterionConfig)
class TransductionCriterion(SummedCriterion):
    """The cross-entropy of the scored symbols, as Hao et al. (2018) reduce it, and the accuracy.

    A symbol is scored if its target is not padding. The gradient is the gradient of the loss of the batch: it is
    divided neither by the number of strings nor by the number of symbols. The scale of the loss matters where L2 is
    added to the gradient.

    Logged are ``loss``, the mean of the losses of batches; ``nll_loss``, a scored symbol; both to base 2, as fairseq's;
    and ``accuracy``, the percentage of all scored symbols whose most probable word is right.
    """

    def __init__(self, task: FairseqTask, reduction: str) -> None:
        super().__init__(task)
        self.reduction = str(reduction)
        self.first_word: int = task.target_dictionary.nspecial

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss of a batch, 1, by which the trainer divides its gradient, and what is logged."""
        logits, target = model(**sample["net_input"])["encoder_out"], sample["target"]
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        is_scored = target.ne(self.padding_idx)
        words = target - self.first_word
        losses = cross_entropy(
            logits.transpose(1, 2), words, ignore_index=self.padding_idx - self.first_word, reduction="none"
        )
        total = losses.sum()
        loss = (losses.sum(0) / is_scored.sum(0).clamp(min=1)).sum() if self.reduction == POSITION_MEAN_SUM else total
        logged = {
            "loss": loss.data,
            "nll_loss": total.data,
            "correct": logits.argmax(2).eq(words).sum(),
            "scored": is_scored.sum(),
            "ntokens": sample["ntokens"],
            "nsentences": len(target),
            "sample_size": 1,
        }
        return loss, 1, logged

    @classmethod
    def reduce_metrics(cls, logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the means over batches and over scored symbols."""
        total = {
            name: float(sum(output.get(name, 0) for output in logging_outputs))
            for name in ("loss", "nll_loss", "correct", "scored", "sample_size")
        }
        metrics.log_scalar("loss", total["loss"] / total["sample_size"] / math.log(2), total["sample_size"], round=3)
        if total["scored"] > 0:
            nll_loss = total["nll_loss"] / total["scored"] / math.log(2)
            accuracy = 100 * total["correct"] / total["scored"]
            metrics.log_scalar("nll_loss", nll_loss, total["scored"], round=3)
            metrics.log_scalar("accuracy", accuracy, total["scored"], round=3)
