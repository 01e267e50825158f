"""``--criterion torch_cross_entropy``: label smoothing as PyTorch defines it."""

from __future__ import annotations

from typing import Any

from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from torch import Tensor

from fairseq_stack.compat.label_smoothed_cross_entropy import negative_log_likelihoods


@register_criterion("torch_cross_entropy", dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class TorchCrossEntropyCriterion(LabelSmoothedCrossEntropyCriterion):
    """Cross-entropy with ``--label-smoothing`` as in ``torch.nn.functional.cross_entropy``.

    The target distribution is (1 - ε) on the right symbol, plus ε / V on each of the V symbols that can occur, the
    right one included. fairseq's ``label_smoothed_cross_entropy`` gives ε / (V - 1) to each of the others, and 1 - ε to
    the right one. With ``--compact-vocab`` V counts the symbols that have an output, and otherwise all entries of the
    dictionary.

    As in all of fairseq's criterions, the loss is summed over the symbols of a batch and averaged when the gradients
    are: over symbols, or with ``--sentence-avg`` over sentences. ``nll_loss`` is the loss without smoothing, a symbol.
    """

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """The smoothed loss and the negative log-likelihood: sums, or, without ``reduce``, one for each symbol."""
        lprobs, target = self.get_lprobs_and_target(model, net_output, sample)
        nll_loss, smooth_loss, num_possible = negative_log_likelihoods(lprobs, target, self.padding_idx, reduce)
        return (1 - self.eps) * nll_loss + self.eps / num_possible * smooth_loss, nll_loss
