"""The result of ``fairseq-stack evaluate-classification``, its parts, and how they are computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from fairseq_stack.label_scores import ClassCounts

from .intervals import Columns, Intervals
from .markdown import table
from .results import Estimate, Result, Row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Values = NDArray[np.float64]


@dataclass(frozen=True)
class LabelledPrompt:
    """What a model says about a prompt.

    Attributes:
        prompt: its tokens.
        label: the right label, or the right value of a regression.
        predicted: the label or the value that the model predicts.
        log_probabilities: log p of each label after the prompt, in nats; none for a regression.
    """

    prompt: Sequence[str]
    label: str | float
    predicted: str | float
    log_probabilities: Mapping[str, float]

    def row(self) -> Row:
        """The prompt and its scores, for a CSV file."""
        scores = {f"log_p_{label}": value for label, value in self.log_probabilities.items()}
        return {"prompt": " ".join(self.prompt), "label": self.label, "predicted": self.predicted, **scores}


@dataclass(frozen=True)
class ClassificationScores:
    """How well predicted labels agree with the right ones.

    Attributes:
        labels: the texts of the labels; the last one is the positive class.
        accuracy: the share of prompts whose label is right.
        f1: F1 of the positive class of two, or else the mean of F1 over all labels; 0 for a label that does not occur.
        matthews: Matthews' correlation; 0 if all labels or all predictions are equal.
    """

    labels: tuple[str, ...]
    accuracy: Estimate
    f1: Estimate
    matthews: Estimate

    def rows(self) -> list[list[str]]:
        """The rows of the table."""
        of = self.labels[-1] if len(self.labels) == 2 else "mean of labels"
        return [
            ["accuracy", *self.accuracy.percent(2)],
            [f"F1 ({of})", *self.f1.percent(2)],
            ["Matthews", *self.matthews.cells(4)],
        ]


@dataclass(frozen=True)
class RegressionScores:
    """How well predicted values are correlated with the right ones; 0 if all of one kind are equal.

    Attributes:
        pearson: the correlation of the values.
        spearman: the correlation of their ranks; equal values have the mean of their ranks.
    """

    pearson: Estimate
    spearman: Estimate

    def rows(self) -> list[list[str]]:
        """The rows of the table."""
        return [["Pearson", *self.pearson.cells(4)], ["Spearman", *self.spearman.cells(4)]]


@dataclass(frozen=True)
class ClassificationResult(Result):
    """A model on a split of prompts.

    Attributes:
        task: the name of the task.
        split: the part of the corpus.
        prompts: number of prompts.
        classification: the scores of predicted labels; None for a regression.
        regression: the scores of predicted values; None for a classification.
    """

    kind: ClassVar[str] = "evaluate-classification"
    task: str
    split: str
    prompts: int
    classification: ClassificationScores | None
    regression: RegressionScores | None

    def lines(self) -> list[str]:
        scores = self.classification or self.regression
        assert scores is not None
        title = self.model.on(f"{self.task}, {self.split}, {self.prompts:,} prompts")
        return [title, "", table(("", "score", "interval"), scores.rows())]


def classification_scores(
    prompts: Sequence[LabelledPrompt], labels: Sequence[str], intervals: Intervals
) -> ClassificationScores:
    """The scores of predicted labels."""
    import numpy as np

    number_of = {label: number for number, label in enumerate(labels)}
    columns = [
        np.array([number_of[str(label)] for label in column])
        for column in zip(*((prompt.predicted, prompt.label) for prompt in prompts), strict=True)
    ]

    def estimate(score: Callable[[ClassCounts], float], stream: int) -> Estimate:
        return intervals.of_statistic(lambda columns: score(_counts(columns, len(labels))), columns, stream)

    scores = (ClassCounts.accuracy, ClassCounts.f1, ClassCounts.matthews)
    return ClassificationScores(tuple(labels), *map(estimate, scores, itertools.count()))


def _counts(columns: Columns, classes: int) -> ClassCounts:
    import numpy as np

    predicted, labels = columns
    groups = (labels[predicted == labels], predicted, labels)
    return ClassCounts(*(np.bincount(group, minlength=classes).tolist() for group in groups))


def regression_scores(prompts: Sequence[LabelledPrompt], intervals: Intervals) -> RegressionScores:
    """The scores of predicted values."""
    import numpy as np

    columns = [np.array(column, dtype=float) for column in zip(*((x.predicted, x.label) for x in prompts), strict=True)]
    return RegressionScores(*map(intervals.of_statistic, (pearson, spearman), itertools.repeat(columns), (0, 1)))


def pearson(columns: Columns) -> float:
    """Pearson's correlation of two columns, each (N,); 0 if all values of one are equal."""
    import numpy as np

    if any(np.ptp(column) == 0 for column in columns):
        return 0.0
    return float(np.corrcoef(*columns)[0, 1])


def spearman(columns: Columns) -> float:
    """Spearman's correlation of two columns, each (N,); 0 if all values of one are equal."""
    return pearson([ranks(column) for column in columns])


def ranks(values: Any) -> Values:
    """The ranks of values (N,), from 1; equal values have the mean of their ranks."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last: Values = np.cumsum(counts)
    ranked: Values = (last - (counts - 1) / 2)[places]
    return ranked
