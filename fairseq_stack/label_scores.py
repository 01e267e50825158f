"""How well predictions agree with labels, from sums that can be added up over batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ClassCounts:
    """Examples of C classes, counted for each class.

    Attributes:
        right: predicted examples that have the class.
        predicted: examples that are predicted to have it.
        labelled: examples that have it; there is at least one example in all.
    """

    right: Sequence[float]
    predicted: Sequence[float]
    labelled: Sequence[float]

    def accuracy(self) -> float:
        """The share of examples that are right."""
        return sum(self.right) / sum(self.labelled)

    def f1(self) -> float:
        """F1 of the last one of two classes, or else the mean of all; 0 for a class that does not occur."""
        each = [
            2 * right / max(1, predicted + labelled)
            for right, predicted, labelled in zip(self.right, self.predicted, self.labelled, strict=True)
        ]
        return each[-1] if len(each) == 2 else sum(each) / len(each)

    def matthews(self) -> float:
        """Matthews' correlation, as Gorodkin (2004) generalises it; 0 if all labels or all predictions are equal."""
        total = sum(self.labelled)
        covariance = sum(self.right) * total - _dot(self.predicted, self.labelled)
        variances = [total**2 - _dot(counts, counts) for counts in (self.predicted, self.labelled)]
        return covariance / math.sqrt(math.prod(variances)) if all(variances) else 0.0


def pearson_from_sums(number: float, x: float, y: float, xx: float, yy: float, xy: float) -> float:
    """Pearson's correlation from the sums of x, y, x², y² and xy; 0 if all of one are equal."""
    covariance, variances = number * xy - x * y, (number * xx - x * x, number * yy - y * y)
    return covariance / math.sqrt(math.prod(variances)) if min(variances) > 0 else 0.0


def _dot(these: Sequence[float], those: Sequence[float]) -> float:
    return sum(this * that for this, that in zip(these, those, strict=True))
