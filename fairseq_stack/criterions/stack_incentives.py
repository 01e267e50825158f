"""``--criterion stack_incentives``: the loss of words, and incentives to use a nondeterministic stack.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import FairseqDataclass
from omegaconf import II
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import pad

from fairseq_stack.criterions._automata import driven_automata
from fairseq_stack.criterions._words import SummedCriterion, log_losses, logged_sums, losses_of_words
from fairseq_stack.errors import UserError
from fairseq_stack.modules import AutomatonStackAttention, DrivenStacks, driven_stacks
from fairseq_stack.modules.stack_attention import at_least_float32
from fairseq_stack.ops.nondeterministic import log_partition

NAME = "stack_incentives"


@dataclass
class StackIncentivesCriterionConfig(FairseqDataclass):
    """The options of the loss."""

    entropy_weight: float = field(
        default=0.0, metadata={"help": "weight of the entropy of runs, which a positive weight rewards"}
    )
    height_weight: float = field(
        default=0.0, metadata={"help": "weight of the loss of runs that leave symbols on the stack at the end"}
    )
    reading_weight: float = field(
        default=0.0, metadata={"help": "weight of the loss of words that an LSTM predicts from stack readings alone"}
    )
    transition_noise: float = field(
        default=0.0,
        metadata={"help": "standard deviation of the noise on the log weights of transitions, new in each update"},
    )
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion(NAME, dataclass=StackIncentivesCriterionConfig)
class StackIncentivesCriterion(SummedCriterion):
    """-log p(x) - a H - b log E[exp(-h)] - c log p_r(x), summed over words or sentences, with weights a, b and c.

    R are the runs of a nondeterministic stack over the whole sentence, and p(R) is in proportion to their weights.
    H = -log sum_R p(R)^2 is their collision entropy (the Rényi entropy of order 2), and h the number of symbols that a
    run leaves above the bottom. The statistics of several stacks are added up. p_r are the predictions of the output
    layer from the stack readings alone, with zeros in place of the hidden states.

    In training, words are predicted with normal noise on the log weights of transitions, by their biases: for each
    transition one number per update. H and h are without noise.

    The losses are averaged when gradients are: over words, or with ``--sentence-avg`` over sentences. The log has the
    sum as ``loss`` and, per word, ``nll_loss``, ``run_entropy``, ``height_loss`` and ``reading_loss``, all to base 2;
    ``ppl`` is of the words.

    Raises:
        UserError: the task is not language modeling of single sentences.
    """

    def __init__(
        self,
        task: Any,
        entropy_weight: float,
        height_weight: float,
        sentence_avg: bool,
        reading_weight: float = 0.0,
        transition_noise: float = 0.0,
    ) -> None:
        super().__init__(task)
        if getattr(getattr(task, "args", None), "sample_break_mode", None) != "eos":
            raise UserError(f"--criterion {NAME} needs language modeling of single sentences, --sample-break-mode eos")
        self.entropy_weight, self.height_weight = entropy_weight, height_weight
        self.reading_weight, self.transition_noise = reading_weight, transition_noise
        self.sentence_avg = sentence_avg

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss, by what it is divided, and what is logged.

        Raises:
            UserError: the model has no nondeterministic stack of unlimited memory, or not what an option needs.
        """
        inputs = sample["net_input"]
        with driven_stacks(model) as stacks:
            output = functional_call(model, self._noisy_biases(model), (), inputs)
        target = sample["target"]
        words = losses_of_words(model, output, target, self.padding_idx)
        lengths = (inputs["src_tokens"] != self.padding_idx).sum(1)
        entropy = height = words.new_zeros(len(words))
        for stack, driving in driven_automata(stacks, NAME):
            unread = words.size(1) - driving.size(1)  # an LSTM does not read the beginning
            of_stack = _entropy_and_height(stack, driving, lengths - unread)
            entropy, height = entropy + of_stack[0], height + of_stack[1]
        alone = self._losses_of_readings(model, stacks, target)
        loss = words.sum(1) - self.entropy_weight * entropy + self.height_weight * height
        loss = loss + self.reading_weight * alone.sum(1)
        sample_size = len(target) if self.sentence_avg else sample["ntokens"]
        statistics = {"run_entropy": entropy, "height_loss": height, "reading_loss": alone}
        logged = logged_sums(sample, sample_size, loss=loss, nll_loss=words, **statistics)
        return loss.sum() if reduce else loss, sample_size, logged

    def _noisy_biases(self, model: Any) -> dict[str, Tensor]:
        """The biases of the log weights of transitions, by name, with noise; none without noise or in evaluation."""
        biases = {}
        for name, stack in model.named_modules():
            if self.transition_noise and model.training and isinstance(stack, AutomatonStackAttention):
                if stack.actions.bias is None:
                    raise UserError("--transition-noise needs the biases of stacks: --stack-bias")
                noise = self.transition_noise * torch.randn_like(stack.actions.bias)
                biases[f"{name}.actions.bias"] = stack.actions.bias + noise
        return biases

    def _losses_of_readings(self, model: Any, stacks: DrivenStacks, target: Tensor) -> Tensor:
        """-log p_r of each word, (B, n), 0 for padding; zeros without the weight."""
        if not self.reading_weight:
            return target.new_zeros(target.shape, dtype=torch.float32)
        lstm = getattr(model.decoder, "lstm", None)
        if lstm is None or not lstm.reading_in_output:
            raise UserError("--reading-weight needs an LSTM with --reading-in-output")
        readings = torch.cat([stack(hidden) for stack, hidden in stacks.values()], 2)
        if readings.size(1) < target.size(1):  # the LSTM does not read the beginning
            first = lstm.initial_output(len(target))[:, None, lstm.hidden_size :]
            readings = torch.cat([first, readings], 1)
        alone = model.decoder.output_layer(pad(readings, (lstm.hidden_size, 0)))
        return losses_of_words(model, (alone, None), target, self.padding_idx)

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the losses of all workers together."""
        log_losses(logging_outputs, "run_entropy", "height_loss", "reading_loss")


def _entropy_and_height(stack: AutomatonStackAttention, inputs: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """H = 2 log Z - log Z' and -log E[exp(-h)] = log Z - log Z'' of the runs over so many of the inputs, (B,) each.

    In Z', all log weights are doubled. In Z'', pushes have log weights that are less by 1, and pops greater by 1.
    """
    if stack.window is not None:
        raise UserError(f"--criterion {NAME}: expected a stack with unlimited memory, got a window of {stack.window}")
    transitions = stack.transitions_of_sequence(at_least_float32(stack.actions(inputs)))
    push, replace, pop = (log_weights.double() for log_weights in transitions)
    log_partitions = log_partition(
        torch.cat([push, 2 * push, push - 1]),
        torch.cat([replace, 2 * replace, replace]),
        torch.cat([pop, 2 * pop, pop + 1]),
    )
    is_end = torch.arange(1, inputs.size(1) + 1, device=inputs.device) == lengths[:, None]
    of_runs, of_pairs, of_low_runs = torch.where(is_end.repeat(3, 1), log_partitions, 0).sum(1).chunk(3)
    return 2 * of_runs - of_pairs, of_runs - of_low_runs
