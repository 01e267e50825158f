"""``--criterion classification_cross_entropy``: the loss of prompts and their labels, and how often labels are right.

fairseq reads the types of options at run time: annotations must not be postponed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.logging import metrics
from omegaconf import II
from torch import Tensor
from torch.nn.functional import one_hot

from fairseq_stack.criterions._words import SummedCriterion, losses_of_attachments, losses_of_words
from fairseq_stack.errors import UserError
from fairseq_stack.label_scores import ClassCounts, pearson_from_sums

SCORED_WORDS = ChoiceEnum(["all", "label"])
_COUNTS = ("right", "predicted", "labelled")
_MOMENTS = ("number", "x", "y", "xx", "yy", "xy")


@dataclass
class ClassificationCrossEntropyCriterionConfig(FairseqDataclass):
    """The options of the loss."""

    scored_words: SCORED_WORDS = field(  # type: ignore[valid-type]
        default="all",
        metadata={
            "help": "words whose loss is trained: the prompt, the label and the end, as in Murty et al. 2023 (all), "
            "or the label alone (label)"
        },
    )
    attachment_weight: float = field(default=0.0, metadata={"help": "weight of the loss of attachments"})
    regression_weight: float = field(default=1.0, metadata={"help": "weight of the squared error of a regression"})
    sentence_avg: bool = II("optimization.sentence_avg")


@register_criterion("classification_cross_entropy", dataclass=ClassificationCrossEntropyCriterionConfig)
class ClassificationCrossEntropyCriterion(SummedCriterion):
    """-log p of the words of a prompt and its label; of a regression, also the squared error of its value.

    The loss of words is averaged when gradients are: over words, or with ``--sentence-avg`` over sentences. The squared
    error, times its weight, is averaged over sentences. With ``--attachment-weight``, the attachments are learned as in
    ``pushdown_cross_entropy``. The log has the sum as ``loss`` and, for a word, ``nll_loss`` and ``attach_loss``, to
    base 2; and ``squared_error``. A validation also has, of all its sentences, the percentages ``accuracy`` and ``f1``
    and the correlation ``matthews`` (:class:`.ClassCounts`); of a regression, the correlation ``pearson``.
    """

    def __init__(
        self, task: Any, scored_words: str, attachment_weight: float, regression_weight: float, sentence_avg: bool
    ) -> None:
        super().__init__(task)
        self.label_only = str(scored_words) == "label"
        self.attachment_weight, self.regression_weight = attachment_weight, regression_weight
        self.sentence_avg = sentence_avg

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> tuple[Tensor, int, dict[str, Any]]:
        """The loss, by what it is divided, and what is logged.

        Raises:
            UserError: the batch has no labels; or attachments are to be learned, and the model has no head for them.
        """
        if "labels" not in sample:
            raise UserError("--criterion classification_cross_entropy needs labels: --task prompt_classification")
        features, extra = output = model(**sample["net_input"], features_only=True)
        target, labels, is_regression = sample["target"], sample["labels"], "is_label" not in sample
        words = losses_of_words(model, (model.decoder.output_layer(features), extra), target, self.padding_idx)
        is_scored = target != self.padding_idx
        if self.label_only:
            is_scored = torch.zeros_like(is_scored) if is_regression else sample["is_label"]
        num_words = int(is_scored.sum())
        size = len(labels) if self.sentence_avg or not num_words else num_words
        words = words.masked_fill(~is_scored, 0).sum(1)
        attached = words.new_zeros(len(labels))
        if "attachment_scores" in extra:
            attached = losses_of_attachments(output, sample, self.padding_idx)[0].sum(1)
        elif self.attachment_weight:
            raise UserError("--attachment-weight needs a model that predicts attachments: pushdown_transformer_lm")
        loss = words + self.attachment_weight * attached
        logged: dict[str, Any] = {"ntokens": sample["ntokens"], "nsentences": len(labels), "sample_size": size}
        if is_regression:
            values = _values(model, features, sample)
            squared = (values - labels).square()
            loss = loss + self.regression_weight * squared * (size / len(labels))
            logged["squared_error"] = squared.sum().data
        if not self.training and is_regression:
            logged |= _moments(values, labels)
        elif "candidates" in sample:
            logged |= _counts(label_log_probabilities(model, sample), labels)
        logged |= {"loss": loss.sum().data, "nll_loss": words.sum().data, "attach_loss": attached.sum().data}
        return loss.sum() if reduce else loss, size, {**logged, "words": num_words}

    @staticmethod
    def reduce_metrics(logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Log the losses of all workers together, and the sums from which the agreement with labels is derived."""
        totals = {name: float(sum(log.get(name, 0) for log in logging_outputs)) for name in logging_outputs[0]}
        size, words, sentences = totals["sample_size"], totals["words"], totals["nsentences"]
        metrics.log_scalar("loss", totals["loss"] / size / math.log(2), size, round=3)
        if words:
            metrics.log_scalar("nll_loss", totals["nll_loss"] / words / math.log(2), words, round=3)
        if totals["attach_loss"]:
            tokens = totals["ntokens"]
            metrics.log_scalar("attach_loss", totals["attach_loss"] / tokens / math.log(2), tokens, round=3)
        if "squared_error" in totals:
            metrics.log_scalar("squared_error", totals["squared_error"] / sentences, sentences, round=4)
        for name in totals:
            if name.startswith("_"):
                metrics.log_scalar_sum(name, totals[name])
        if "_number" in totals:
            metrics.log_derived("pearson", _pearson)
        elif "_right_0" in totals:
            classes = sum(name.startswith("_right_") for name in totals)
            for name, percent in (("accuracy", 100), ("f1", 100), ("matthews", 1)):
                metrics.log_derived(name, partial(_of_counts, name, percent, classes))


def label_log_probabilities(model: Any, sample: dict[str, Any]) -> Tensor:
    """log p of each label after the prompts of a batch with candidates, (B, C)."""
    columns = []
    for candidate in sample["candidates"]:
        log_probs = model.get_normalized_probs(model(**candidate["net_input"]), log_probs=True)
        of_words = log_probs.gather(2, candidate["target"].unsqueeze(2)).squeeze(2)
        columns.append(of_words.masked_fill(~candidate["is_label"], 0).double().sum(1))
    return torch.stack(columns, 1)


def predicted_values(model: Any, sample: dict[str, Any]) -> Tensor:
    """The values that a model with a regressor predicts for the prompts of a batch, (B,)."""
    features, _ = model(**sample["net_input"], features_only=True)
    return _values(model, features, sample)


def _values(model: Any, features: Tensor, sample: dict[str, Any]) -> Tensor:
    """The values (B,) for the features (B, n, d), of which the last one counts."""
    last = sample["net_input"]["src_lengths"] - 1
    values: Tensor = model.regressor(features[torch.arange(len(features), device=features.device), last])
    return values.squeeze(1).float()


def _counts(log_probabilities: Tensor, labels: Tensor) -> dict[str, float]:
    """The sums that :class:`.ClassCounts` takes, for log p of C labels, (B, C), and the right ones, (B,)."""
    columns = [one_hot(numbers, log_probabilities.size(1)) for numbers in (log_probabilities.argmax(1), labels)]
    sums = [column.sum(0).tolist() for column in (columns[0] * columns[1], *columns)]
    return {
        f"_{name}_{label}": count
        for name, counts in zip(_COUNTS, sums, strict=True)
        for label, count in enumerate(counts)
    }


def _moments(values: Tensor, labels: Tensor) -> dict[str, float]:
    """The sums that :func:`.pearson_from_sums` takes, for values and labels (B,)."""
    x, y = values.detach().double(), labels.double()
    sums = (torch.ones_like(x).sum(), x.sum(), y.sum(), (x * x).sum(), (y * y).sum(), (x * y).sum())
    return {f"_{name}": float(value) for name, value in zip(_MOMENTS, sums, strict=True)}


def _pearson(meters: Any) -> float:
    return round(pearson_from_sums(*(meters[f"_{name}"].sum for name in _MOMENTS)), 5)


def _of_counts(name: str, percent: int, classes: int, meters: Any) -> float:
    counts = ClassCounts(*([meters[f"_{of}_{label}"].sum for label in range(classes)] for of in _COUNTS))
    value: float = getattr(counts, name)()
    return round(percent * value, 5)
