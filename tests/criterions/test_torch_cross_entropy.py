"""The criterion torch_cross_entropy equals PyTorch's cross-entropy, in value and gradient."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.criterions.torch_cross_entropy import TorchCrossEntropyCriterion
from tests.helpers import assert_normwise_close

PAD = 1
ALL = list(range(8))
POSSIBLE = [0, 2, 3, 6]
TARGET = torch.tensor([[0, 2, 3, 6, PAD], [6, 6, 2, PAD, PAD]])


class Model(torch.nn.Module):
    """Logits (B, n, V) that do not depend on the input; symbols that cannot occur have minus infinity."""

    def __init__(self, possible: list[int]) -> None:
        super().__init__()
        self.logits = torch.nn.Parameter(torch.randn(*TARGET.shape, len(possible), dtype=torch.float64))
        self.possible = possible

    def forward(self) -> Tensor:
        impossible = self.logits.new_full((*TARGET.shape, len(ALL)), -torch.inf)
        return impossible.index_copy(2, torch.tensor(self.possible), self.logits)

    def get_normalized_probs(self, net_output: Tensor, log_probs: bool) -> Tensor:
        return net_output.log_softmax(dim=-1)

    def get_targets(self, sample: dict[str, Tensor], net_output: Tensor) -> Tensor:
        return sample["target"]


def criterion(epsilon: float, **options: Any) -> TorchCrossEntropyCriterion:
    task: Any = SimpleNamespace(target_dictionary=SimpleNamespace(pad=lambda: PAD))
    return TorchCrossEntropyCriterion(task, sentence_avg=True, label_smoothing=epsilon, **options)


def expected(model: Model, epsilon: float, reduction: str = "sum") -> Tensor:
    """PyTorch's loss over the symbols that can occur."""
    rows = torch.full((len(ALL),), -100)
    rows[model.possible] = torch.arange(len(model.possible))
    rows[PAD] = -100
    return torch.nn.functional.cross_entropy(
        model.logits.flatten(0, 1), rows[TARGET].flatten(), label_smoothing=epsilon, reduction=reduction
    )


@pytest.mark.parametrize("possible", [ALL, POSSIBLE], ids=["whole-dictionary", "compact"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.9])
def test_equals_torch(possible: list[int], epsilon: float) -> None:
    model = Model(possible)
    sample = {"net_input": {}, "target": TARGET, "ntokens": 7}
    loss, sample_size, logged = criterion(epsilon)(model, sample)
    right = expected(model, epsilon)
    gradient, right_gradient = (torch.autograd.grad(value, model.logits)[0] for value in (loss, right))
    assert_normwise_close(loss, right, 1e-14, "loss")
    assert_normwise_close(gradient, right_gradient, 1e-14, "gradient")
    assert sample_size == len(TARGET)
    assert_normwise_close(logged["nll_loss"], expected(model, 0.0), 1e-14, "nll_loss")
    assert torch.equal(logged["loss"], loss)


def test_one_loss_for_each_symbol() -> None:
    model = Model(POSSIBLE)
    loss, _ = criterion(0.1).compute_loss(model, model(), {"target": TARGET}, reduce=False)
    assert_normwise_close(loss.squeeze(-1), expected(model, 0.1, "none"), 1e-14, "losses")
