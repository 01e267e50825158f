"""The criterion pushdown_cross_entropy: the sum of two cross-entropies, of words and of legal attachments."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.logging import metrics
from torch import Tensor

from fairseq_stack.criterions.pushdown_cross_entropy import PushdownCrossEntropyCriterion
from fairseq_stack.errors import UserError
from fairseq_stack.ops import legal_attachments
from tests.helpers import assert_normwise_close

PAD, EOS = 1, 2
TARGET = torch.tensor([[5, 3, 4, EOS], [6, EOS, PAD, PAD]])
ATTACHMENTS = torch.tensor([[1, 1, 2, 0], [1, 0, 3, 4]])
PARSES = torch.tensor([[0, 1, 1, 2], [0, 1, 2, 3]])


class Model(torch.nn.Module):
    """Scores that do not depend on the input."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Parameter(torch.randn(2, 4, 7, dtype=torch.float64))
        scores = torch.randn(2, 4, 5, dtype=torch.float64)
        self.attachments = torch.nn.Parameter(scores.masked_fill(~torch.ones(4, 5).tril(1).bool(), -math.inf))

    def forward(self) -> tuple[Tensor, dict[str, Tensor]]:
        return self.words, {"attachment_scores": self.attachments}

    def get_normalized_probs(self, net_output: tuple[Tensor, dict[str, Tensor]], log_probs: bool) -> Tensor:
        return net_output[0].log_softmax(-1)


def sample() -> dict[str, Any]:
    legal = legal_attachments(PARSES, TARGET == EOS)
    return {"net_input": {}, "target": TARGET, "ntokens": 6, "attachments": ATTACHMENTS, "legal_attachments": legal}


def criterion(weight: float = 1.0, softmax: str = "legal", sentence_avg: bool = False) -> PushdownCrossEntropyCriterion:
    task: Any = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD, eos=lambda: EOS))
    return PushdownCrossEntropyCriterion(task, weight, softmax, sentence_avg)


@pytest.mark.parametrize("softmax", ["legal", "all"])
@pytest.mark.parametrize("weight", [1.0, 0.0, 2.5])
def test_sum_of_losses(weight: float, softmax: str) -> None:
    model = Model()
    loss, sample_size, logged = criterion(weight, softmax)(model, sample())
    assert sample_size == 6
    words, attached, legal = 0.0, 0.0, sample()["legal_attachments"]
    of_words, of_attachments = model.words.detach(), model.attachments.detach()
    for row in range(2):
        for t in range(4):
            if TARGET[row, t] != PAD:
                words -= float(of_words[row, t].log_softmax(0)[TARGET[row, t]])
                scores = {j: float(of_attachments[row, t, j].exp()) for j in range(t + 2)}
                possible = [j for j in scores if softmax == "all" or legal[row, t, j]]
                attached -= math.log(scores[int(ATTACHMENTS[row, t])] / sum(scores[j] for j in possible))
    assert_normwise_close(loss, words + weight * attached, 1e-12)
    assert_normwise_close(logged["nll_loss"], words, 1e-12)
    assert_normwise_close(logged["attach_loss"], attached, 1e-12)
    loss.backward()
    for parameter in model.parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all()
    assert bool(model.attachments.grad.any()) == (weight > 0)


def test_each_word_or_each_sentence() -> None:
    model = Model()
    total, *_ = criterion()(model, sample())
    each, *_ = criterion()(model, sample(), reduce=False)
    assert each.shape == TARGET.shape
    assert not each[TARGET == PAD].any()
    assert_normwise_close(each.sum(), total, 1e-14)
    assert criterion(sentence_avg=True)(model, sample())[1] == 2


def test_what_is_logged() -> None:
    """Of two workers: the loss per sample, which is a sentence, its parts per word, and right attachments of words."""
    model = Model()
    model.attachments.data[0, 2] = torch.tensor([0, 0, 0, 9.0, -math.inf])  # the last word stays alone: wrong
    model.attachments.data[0, 1] = torch.tensor([0, 9.0, 0, -math.inf, -math.inf])
    loss, _, logged = criterion(sentence_avg=True)(model, sample())
    assert (int(logged["right"]), int(logged["words"])) == (3, 4)
    with metrics.aggregate() as logged_metrics:
        PushdownCrossEntropyCriterion.reduce_metrics([logged, {**logged, "loss": 3 * logged["loss"], "sample_size": 6}])
    values = logged_metrics.get_smoothed_values()
    assert values["attach_accuracy"] == 0.75
    assert values["loss"] == pytest.approx(4 * float(loss) / 8 / math.log(2), abs=0.0006)
    assert values["nll_loss"] + values["attach_loss"] == pytest.approx(float(loss) / 6 / math.log(2), abs=0.002)
    assert values["ppl"] == pytest.approx(2 ** values["nll_loss"], rel=0.01)


@pytest.mark.parametrize(
    ("missing", "problem"),
    [
        ("attachments", "needs parses: --task pushdown_language_modeling"),
        ("attachment_scores", "needs a model that predicts attachments: pushdown_transformer_lm"),
    ],
)
def test_errors(missing: str, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = Model(), sample()
    batch.pop(missing, None)
    if missing == "attachment_scores":
        monkeypatch.setattr(model, "forward", lambda: (model.words, {}))
    with pytest.raises(UserError, match=f"^--criterion pushdown_cross_entropy {problem}$"):
        criterion()(model, batch)
