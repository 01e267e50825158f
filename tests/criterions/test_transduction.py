"""The criterion transduction against sums written out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import metrics

from fairseq_stack.criterions.transduction import TransductionCriterion

PAD, FIRST = 1, 4
# Of three strings, two, one, none and three symbols are scored at the four positions.
TARGET = torch.tensor([[4, PAD, PAD, 5], [6, 5, PAD, 4], [PAD, PAD, PAD, 4]])


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.randn(3, 4, 3, dtype=torch.float64))

    def forward(self) -> dict[str, torch.Tensor]:
        return {"encoder_out": self.logits}


def criterion(reduction: str) -> Any:
    dictionary = SimpleNamespace(pad=lambda: PAD, nspecial=FIRST)
    return TransductionCriterion(SimpleNamespace(target_dictionary=dictionary), reduction)


SAMPLE: dict[str, Any] = {"net_input": {}, "target": TARGET, "ntokens": 11}


@pytest.mark.parametrize("reduction", ["position_mean_sum", "sum"])
def test_loss_and_accuracy(reduction: str) -> None:
    model = Model()
    loss, size, logged = criterion(reduction)(model, SAMPLE)
    log_probs, expected, correct = model.logits.log_softmax(2), 0.0, 0
    for position in range(4):
        rows = [row for row in range(3) if TARGET[row, position] != PAD]
        losses = [-log_probs[row, position, TARGET[row, position] - FIRST].item() for row in rows]
        expected += sum(losses) / (len(rows) if reduction == "position_mean_sum" and rows else 1)
        correct += sum(int(log_probs[row, position].argmax()) + FIRST == int(TARGET[row, position]) for row in rows)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    assert (size, int(logged["scored"]), int(logged["correct"])) == (1, 6, correct)
    loss.backward()
    assert model.logits.grad is not None
    assert model.logits.grad.abs().sum(2).gt(0).equal(TARGET.ne(PAD))


def test_nothing_is_scored() -> None:
    model = Model()
    loss, _, _ = criterion("position_mean_sum")(model, {**SAMPLE, "target": torch.full_like(TARGET, PAD)})
    loss.backward()
    assert loss.item() == 0 and model.logits.grad is not None and not model.logits.grad.any()


def test_accuracy_is_pooled_over_batches() -> None:
    outputs = [
        {"loss": 3.0, "nll_loss": 6.0, "correct": 1, "scored": 4, "sample_size": 1},
        {"loss": 1.0, "nll_loss": 6.0, "correct": 2, "scored": 2, "sample_size": 1},
    ]
    with metrics.aggregate(new_root=True) as pooled:
        TransductionCriterion.reduce_metrics(outputs)
    values = {name: meter.avg for name, meter in pooled.items()}
    assert values == pytest.approx({"loss": 2 / 0.6931472, "nll_loss": 2 / 0.6931472, "accuracy": 50}, rel=1e-6)
