"""The criterion classification_cross_entropy: its loss, and metrics of whole validations."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.logging import metrics
from torch import Tensor

from fairseq_stack.criterions.classification_cross_entropy import ClassificationCrossEntropyCriterion
from fairseq_stack.evaluation.classification import LabelledPrompt, classification_scores, regression_scores
from fairseq_stack.evaluation.intervals import Intervals
from tests.helpers import assert_normwise_close

PAD, EOS = 1, 2
TARGET = torch.tensor([[5, 3, 4, EOS], [6, EOS, PAD, PAD]])
IS_LABEL = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0]], dtype=torch.bool)
LENGTHS = torch.tensor([4, 2])


class Model(torch.nn.Module):
    """Features that do not depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Parameter(torch.randn(2, 4, 7, dtype=torch.float64))
        self.regressor = torch.nn.Linear(7, 1, dtype=torch.float64)
        self.decoder = SimpleNamespace(output_layer=lambda features: features)

    def forward(self, src_lengths: Tensor, features_only: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
        return self.features, {}

    def get_normalized_probs(self, net_output: tuple[Tensor, dict[str, Tensor]], log_probs: bool) -> Tensor:
        return net_output[0].log_softmax(-1)


def criterion(words: str = "all", weight: float = 1.0, sentence_avg: bool = False) -> Any:
    task: Any = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD, eos=lambda: EOS))
    return ClassificationCrossEntropyCriterion(task, words, 0.0, weight, sentence_avg)


def sample(labels: Tensor, **more: Any) -> dict[str, Any]:
    return {"net_input": {"src_lengths": LENGTHS}, "target": TARGET, "ntokens": 6, "labels": labels, **more}


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("words", ["all", "label"])
def test_words(words: str, sentence_avg: bool) -> None:
    model = Model()
    loss, size, _ = criterion(words, sentence_avg=sentence_avg)(model, sample(torch.tensor([1, 0]), is_label=IS_LABEL))
    scored = IS_LABEL if words == "label" else TARGET != PAD
    each = -model.features.log_softmax(2).gather(2, TARGET.unsqueeze(2)).squeeze(2)
    assert_normwise_close(loss, each[scored].sum(), 1e-12)
    assert size == (2 if sentence_avg else int(scored.sum()))


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("words", ["all", "label"])
def test_regression(words: str, sentence_avg: bool) -> None:
    """The mean loss of words, and the mean squared error times its weight; the last token's features count."""
    model, labels = Model(), torch.tensor([1.5, -2.0])
    loss, size, logged = criterion(words, 0.3, sentence_avg)(model, sample(labels))
    values = model.regressor(torch.stack([model.features[0, 3], model.features[1, 1]])).squeeze(1)
    each = -model.features.log_softmax(2).gather(2, TARGET.unsqueeze(2)).squeeze(2)[TARGET != PAD].sum()
    squared = (values.float() - labels).square().mean()
    of_words = 0 if words == "label" else each / (2 if sentence_avg else 6)
    assert_normwise_close(loss / size, of_words + 0.3 * squared, 1e-6)
    loss.backward()
    assert model.regressor.weight.grad is not None and model.features.grad is not None
    assert float(logged["squared_error"]) == pytest.approx(2 * squared.item(), rel=1e-5)


def reduced(outputs: list[dict[str, Any]]) -> dict[str, float]:
    """What is logged of batches that come one after the other."""
    with metrics.aggregate(new_root=True) as logged:
        for output in outputs:
            ClassificationCrossEntropyCriterion.reduce_metrics([output])
    values: dict[str, float] = logged.get_smoothed_values()
    return values


def test_metrics_are_of_all_batches_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not the mean of those of batches; of labels that no batch has as well."""
    rng, outputs, prompts = np.random.default_rng(3), [], []
    model, names = Model(), ["0", "1", "2"]
    validation = criterion().eval()
    for _ in range(7):
        scores, labels = torch.from_numpy(rng.normal(size=(2, 3))), torch.from_numpy(rng.integers(2, size=2))
        monkeypatch.setattr(
            "fairseq_stack.criterions.classification_cross_entropy.label_log_probabilities",
            lambda model, sample, scores=scores: scores,
        )
        outputs.append(validation(model, sample(labels, is_label=IS_LABEL, candidates=[]))[2])
        pairs = zip(labels.tolist(), scores.argmax(1).tolist(), strict=True)
        prompts += [LabelledPrompt((), str(label), str(predicted), {}) for label, predicted in pairs]
    expected = classification_scores(prompts, names, Intervals(2, 0.9, 0))
    values = reduced(outputs)
    assert values["accuracy"] == pytest.approx(100 * expected.accuracy.value, abs=1e-4)
    assert values["f1"] == pytest.approx(100 * expected.f1.value, abs=1e-4)
    assert values["matthews"] == pytest.approx(expected.matthews.value, abs=1e-4)
    assert not any(name.startswith("_") for name in values)


def test_correlation_is_of_all_batches_together() -> None:
    outputs, prompts = [], []
    validation = criterion().eval()
    for _ in range(5):
        model, labels = Model(), torch.randn(2) + 100
        output = validation(model, sample(labels))[2]
        values = model.regressor(torch.stack([model.features[0, 3], model.features[1, 1]])).squeeze(1).float()
        outputs.append(output)
        prompts += [LabelledPrompt((), *pair, {}) for pair in zip(labels.tolist(), values.tolist(), strict=True)]
    expected = regression_scores(prompts, Intervals(2, 0.9, 0)).pearson.value
    assert reduced(outputs)["pearson"] == pytest.approx(expected, abs=1e-5)
    assert "pearson" not in reduced([criterion()(Model(), sample(torch.randn(2)))[2]])


def test_loss_in_the_log() -> None:
    loss, size, logged = criterion()(Model(), sample(torch.tensor([1, 0]), is_label=IS_LABEL))
    values = reduced([logged])
    assert values["loss"] == values["nll_loss"] == pytest.approx(loss.item() / size / math.log(2), abs=6e-4)
