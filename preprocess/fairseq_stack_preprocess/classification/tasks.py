"""The prompts of Murty et al. (2023, Appendix A), for the columns of GLUE's tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        template: the prompt, with the columns of its sentences in braces and, at the end, ``{label}``.
        label_column: the column of the labels, or of the values of a regression.
        labels: what the prompt has for each label; None: the task is a regression.
    """

    template: str
    label_column: str
    labels: Mapping[str, str] | None = None


TASKS = {
    "rte": Task(
        "Premise: {sentence1}. Hypothesis: {sentence2}. Label: {label}",
        "label",
        {"not_entailment": "No", "entailment": "Yes"},
    ),
    "mrpc": Task("Sentence1: {#1 String}. Sentence2: {#2 String}. Label: {label}", "Quality", {"0": "0", "1": "1"}),
    # The paper does not say what it has for the five labels.
    "sst5": Task(
        "Sentence: {sentence}. Sentiment: {label}",
        "label",
        {"0": "very negative", "1": "negative", "2": "neutral", "3": "positive", "4": "very positive"},
    ),
    "sts-b": Task("Sentence1: {sentence1}. Sentence2: {sentence2}", "score"),
}
