"""``--criterion operation_cross_entropy``: the loss of words, and of what parses tell a nondeterministic stack to do.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II
from torch import Tensor

from fairseq_stack.criterions._automata import driven_automata
from fairseq_stack.criterions._words import SummedCriterion, log_losses, logged_sums, losses_of_words
from fairseq_stack.errors import UserError
from fairseq_stack.modules import DrivenStacks, StackOperation, driven_stacks, operation_log_probability
from fairseq_stack_preprocess.trees.operations import operations
from fairseq_stack_preprocess.trees.spans import spans_of_attachments

RUNS = ChoiceEnum(["sentence", "prefixes"])


@dataclass
class OperationCrossEntropyCriterionConfig(FairseqDataclass):
    """The options of the loss."""

    operation_weight: float = field(default=1.0, metadata={"help": "weight of the loss of the stack's operations"})
    operation_runs: RUNS = field(  # type: ignore[valid-type]
        default="sentence", metadata={"help": "the loss of operations is of runs over the sentence or its prefixes"}
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("operation_cross_entropy", dataclass=OperationCrossEntropyCriterionConfig)
class OperationCrossEntropyCriterion(SummedCriterion):
    """-log p(x) of the words and, times a weight, -log p(R) = log Z - log Z(R), summed over words or sentences.

    R are the runs of a nondeterministic stack that take the operations of the gold parse
    (``fairseq_stack_preprocess.trees.operations``), Z(R) is their weight and Z the weight of all runs. States and stack
    symbols stay latent, except that the state after a replacement says whether the parse descends or climbs. With
    several such stacks, their losses are added up.

    With ``--operation-runs prefixes``, -log p(R) is the mean of log Z_t - log Z_t(R) over the prefixes of t words. A
    stack reading is made of the runs over a prefix, about which runs over the whole sentence say little.

    Both losses are averaged when gradients are: over words, or with ``--sentence-avg`` over sentences. The log has the
    sum as ``loss``, and its parts per word as ``nll_loss`` and ``operation_loss``, all to base 2; ``ppl`` is of the
    words.
    """

    def __init__(
        self, task: Any, operation_weight: float, sentence_avg: bool, operation_runs: str = "sentence"
    ) -> None:
        super().__init__(task)
        self.operation_weight, self.operation_runs = operation_weight, operation_runs
        self.sentence_avg = sentence_avg

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss, by what it is divided, and what is logged.

        Raises:
            UserError: the batch has no parses, or the model no nondeterministic stack that can be supervised.
        """
        if "attachments" not in sample:
            raise UserError("--criterion operation_cross_entropy needs parses: --task pushdown_language_modeling")
        with driven_stacks(model) as stacks:
            output = model(**sample["net_input"])
        target = sample["target"]
        words = losses_of_words(model, output, target, self.padding_idx)
        lengths = (sample["net_input"]["src_tokens"] != self.padding_idx).sum(1)  # the target may lack the end
        operations = operations_of_parses(sample["attachments"], lengths)
        operated = _losses_of_operations(stacks, operations, lengths, self.operation_runs)
        loss = words.sum(1) + self.operation_weight * operated
        sample_size = len(target) if self.sentence_avg else sample["ntokens"]
        logged = logged_sums(sample, sample_size, loss=loss, nll_loss=words, operation_loss=operated)
        return loss.sum() if reduce else loss, sample_size, logged

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the losses of all workers together."""
        log_losses(logging_outputs, "operation_loss")


def operations_of_parses(attachments: Tensor, lengths: Tensor) -> Tensor:
    """What each symbol does to the stack, (B, n): a :class:`.StackOperation`.

    Args:
        attachments: what the next words attach to, (B, n), as in the batches of ``pushdown_language_modeling``.
        lengths: how many symbols are read before the end of each sentence, (B,): ``</s>`` and its words.

    Raises:
        UserError: there are several sentences in a row.
    """
    rows = torch.full(attachments.shape, int(StackOperation.ANY))
    for row, attached, length in zip(rows, attachments.tolist(), lengths.tolist(), strict=True):
        if 0 in attached[: length - 1]:
            raise UserError("--criterion operation_cross_entropy needs --sample-break-mode eos, a sentence per sample")
        of_words = operations(spans_of_attachments(attached[: length - 1]), length - 1)
        row[:length] = torch.tensor([StackOperation.REPLACE, *of_words])
    return rows.to(attachments.device)


def _losses_of_operations(stacks: DrivenStacks, steps: Tensor, lengths: Tensor, runs: str) -> Tensor:
    """-log p(R) of each sentence, (B,), for the operations (B, n)."""
    losses = torch.zeros(len(steps), dtype=torch.float64, device=steps.device)
    for stack, inputs in driven_automata(stacks, "operation_cross_entropy"):
        unread = steps.size(1) - inputs.size(1)  # an LSTM does not read the beginning
        try:
            of_prefixes = operation_log_probability(stack, inputs, steps[:, unread:])
        except ValueError as error:
            raise UserError(f"--criterion operation_cross_entropy: {error}") from error
        sizes = torch.arange(1, of_prefixes.size(1) + 1, device=steps.device)
        last = (lengths - unread)[:, None]
        counted = sizes == last if runs == "sentence" else sizes <= last
        losses = losses - torch.where(counted, of_prefixes, 0).sum(1) / counted.sum(1).clamp(min=1)
    return losses.to(torch.promote_types(inputs.dtype, torch.float32))
