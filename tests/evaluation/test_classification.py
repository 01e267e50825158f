"""Agreement of predictions with labels: by hand, and as scikit-learn and SciPy compute it."""

from __future__ import annotations

import numpy as np
import pytest

from fairseq_stack.evaluation.classification import (
    LabelledPrompt,
    classification_scores,
    pearson,
    ranks,
    regression_scores,
    spearman,
)
from fairseq_stack.evaluation.intervals import Intervals
from fairseq_stack.label_scores import ClassCounts, pearson_from_sums

INTERVALS = Intervals(200, 0.9, 0)


def test_nothing_varies() -> None:
    counts = ClassCounts(right=(0, 3), predicted=(0, 5), labelled=(2, 3))
    assert (counts.matthews(), counts.accuracy()) == (0, 0.6)
    assert ClassCounts(right=(4, 0), predicted=(4, 0), labelled=(4, 0)).f1() == 0
    constant, rising = np.full(3, 0.1), np.arange(3.0)
    assert pearson([constant, rising]) == pearson([rising, constant]) == spearman([constant, rising]) == 0
    assert pearson_from_sums(3, 6, 3, 12, 5, 6) == 0


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_as_scikit_learn(classes: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(classes)
    labels = rng.integers(classes, size=80)
    predicted = np.where(rng.random(80) < 0.5, labels, rng.integers(classes, size=80))
    names = [f"label {number}" for number in range(classes)]
    prompts = [LabelledPrompt((), names[y], names[x], {}) for x, y in zip(predicted, labels, strict=True)]
    scores = classification_scores(prompts, names, INTERVALS)
    assert scores.accuracy.value == pytest.approx(metrics.accuracy_score(labels, predicted))
    assert scores.f1.value == pytest.approx(
        metrics.f1_score(labels, predicted, average="binary" if classes == 2 else "macro")
    )
    assert scores.matthews.value == pytest.approx(metrics.matthews_corrcoef(labels, predicted))


def test_as_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    y = rng.integers(6, size=60) / 2
    x = np.round(y + rng.normal(size=60), 1)
    scores = regression_scores([LabelledPrompt((), *pair, {}) for pair in zip(y, x, strict=True)], INTERVALS)
    assert ranks(x).tolist() == stats.rankdata(x).tolist()
    assert scores.pearson.value == pytest.approx(stats.pearsonr(x, y).statistic)
    assert scores.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert pearson_from_sums(60, *map(float, (x.sum(), y.sum(), x @ x, y @ y, x @ y))) == pytest.approx(
        scores.pearson.value
    )
