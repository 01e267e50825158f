"""``--criterion pushdown_cross_entropy``: the loss of words and of what they attach to.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor

from fairseq_stack.criterions._words import (
    SummedCriterion,
    log_losses,
    logged_sums,
    losses_of_attachments,
    losses_of_words,
)
from fairseq_stack.errors import UserError

SOFTMAXES = ChoiceEnum(["legal", "all"])


@dataclass
class PushdownCrossEntropyCriterionConfig(FairseqDataclass):
    """The options of the loss."""

    attachment_weight: float = field(default=1.0, metadata={"help": "weight of the loss of attachments"})
    attachment_softmax: SOFTMAXES = field(  # type: ignore[valid-type]
        default="legal",
        metadata={
            "help": "the set over which attachment probabilities sum to 1 in training: legal attachments, or all words "
            "up to the next, as in the code of Murty et al. 2023; parsing and scoring always use the legal ones"
        },
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("pushdown_cross_entropy", dataclass=PushdownCrossEntropyCriterionConfig)
class PushdownCrossEntropyCriterion(SummedCriterion):
    """-log p(x_k | x_{<k}, W_{k-1}) and, times a weight, -log p(r_k | x_{<=k}, W_{k-1}), summed over words and ends.

    They are averaged when gradients are: over words, or with ``--sentence-avg`` over sentences. The log has the sum as
    ``loss``, and its parts for a word as ``nll_loss`` and ``attach_loss``, all to base 2; ``ppl`` is of the words. In
    ``attach_accuracy`` are words whose most probable attachment is right; ends of sentences, which have one, are not.
    """

    def __init__(self, task: Any, attachment_weight: float, attachment_softmax: str, sentence_avg: bool) -> None:
        super().__init__(task)
        self.attachment_weight = attachment_weight
        self.legal_only = str(attachment_softmax) == "legal"
        self.sentence_avg = sentence_avg
        self.eos = task.target_dictionary.eos()

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss, by what it is divided, and what is logged.

        Raises:
            UserError: the batch has no parses, or the model has no head for attachments.
        """
        needs = "--criterion pushdown_cross_entropy needs"
        if "attachments" not in sample:
            raise UserError(f"{needs} parses: --task pushdown_language_modeling")
        output = model(**sample["net_input"])
        if "attachment_scores" not in output[1]:
            raise UserError(f"{needs} a model that predicts attachments: pushdown_transformer_lm")
        target = sample["target"]
        words = losses_of_words(model, output, target, self.padding_idx)
        attached, log_probs = losses_of_attachments(output, sample, self.padding_idx, self.legal_only)
        loss = words + self.attachment_weight * attached
        is_word = (target != self.padding_idx) & (target != self.eos)
        is_right = (log_probs.argmax(2) == sample["attachments"]) & is_word
        sample_size = len(target) if self.sentence_avg else sample["ntokens"]
        sums = {"loss": loss, "nll_loss": words, "attach_loss": attached, "right": is_right, "words": is_word}
        logged = logged_sums(sample, sample_size, **sums)
        return loss.sum() if reduce else loss, sample_size, logged

    @staticmethod
    def reduce_metrics(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the losses of all workers together."""
        totals = log_losses(logging_outputs, "attach_loss")
        if words := totals["words"]:
            metrics.log_scalar("attach_accuracy", torch.as_tensor(totals["right"] / words), words, round=4)
