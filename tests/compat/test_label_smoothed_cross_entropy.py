"""Label smoothing on a vocabulary in which some symbols cannot occur."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from fairseq.criterions import label_smoothed_cross_entropy
from torch import Tensor

import fairseq_stack.models  # noqa: F401  (installs what is tested)
from tests.helpers import assert_normwise_close

Loss = Callable[..., tuple[Tensor, Tensor]]
POSSIBLE = [0, 2, 3, 6]  # of 8 symbols
PAD = 1


label_smoothed_nll_loss: Any = label_smoothed_cross_entropy.label_smoothed_nll_loss
fairseq_loss: Loss = label_smoothed_nll_loss.__wrapped__


def compact_log_probabilities(rows: int) -> Tensor:
    logits = torch.full((rows, 8), -torch.inf, dtype=torch.float64)
    logits[:, POSSIBLE] = torch.randn(rows, len(POSSIBLE), dtype=torch.float64)
    return logits.log_softmax(dim=-1).requires_grad_()


@pytest.mark.parametrize("reduce", [True, False], ids=["sum", "each"])
@pytest.mark.parametrize("ignore_index", [None, PAD], ids=["all", "no-pad"])
def test_loss_is_bit_identical_to_fairseqs_without_impossible_symbols(ignore_index: int | None, reduce: bool) -> None:
    lprobs = torch.randn(30, 8).log_softmax(dim=-1).requires_grad_()
    target = torch.randint(8, (30,))
    results = []
    for function in (label_smoothed_nll_loss, fairseq_loss):
        losses = function(lprobs, target, 0.1, ignore_index=ignore_index, reduce=reduce)
        results.append([*losses, *torch.autograd.grad(losses[0].sum(), lprobs)])
    for ours, fairseqs in zip(*results, strict=True):
        assert ours.dtype == fairseqs.dtype
        assert torch.equal(ours, fairseqs)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize("ignore_index", [None, PAD], ids=["all", "no-pad"])
def test_loss_is_fairseqs_of_the_reduced_vocabulary(ignore_index: int | None, epsilon: float) -> None:
    lprobs = compact_log_probabilities(12)
    target = torch.tensor(POSSIBLE * 3)
    reduced = lprobs.detach()[:, POSSIBLE].requires_grad_()
    reduced_target = torch.arange(len(POSSIBLE)).repeat(3)
    if ignore_index is not None:
        target[5], reduced_target[5] = PAD, -1
    ours = label_smoothed_nll_loss(lprobs, target, epsilon, ignore_index)
    kept = reduced_target >= 0
    expected = fairseq_loss(reduced[kept], reduced_target[kept], epsilon)
    gradient, expected_gradient = (
        torch.autograd.grad(loss, inputs)[0] for loss, inputs in ((ours[0], lprobs), (expected[0], reduced))
    )
    assert_normwise_close(torch.stack(ours), torch.stack(expected), 1e-14, "loss and nll")
    assert_normwise_close(gradient[:, POSSIBLE], expected_gradient, 1e-14, "gradient")
    impossible = sorted(set(range(8)) - set(POSSIBLE))
    assert torch.equal(gradient[:, impossible], torch.zeros(12, len(impossible), dtype=torch.float64))


def test_impossible_target_costs_infinity() -> None:
    loss, nll_loss = label_smoothed_nll_loss(compact_log_probabilities(2), torch.tensor([0, 5]), 0.1)
    assert loss.item() == nll_loss.item() == float("inf")


def test_nan_is_not_hidden() -> None:
    lprobs = torch.zeros(2, 8)
    lprobs[0, 3] = torch.nan
    loss, _ = label_smoothed_nll_loss(lprobs, torch.tensor([0, 1]), 0.1)
    assert loss.isnan()


def test_no_rows_cost_nothing() -> None:
    loss, nll_loss = label_smoothed_nll_loss(torch.zeros(0, 8), torch.zeros(0, dtype=torch.long), 0.1)
    assert loss.item() == nll_loss.item() == 0.0


def test_all_criterions_of_fairseq_use_it() -> None:
    users = [
        module
        for name, module in sys.modules.items()
        if name.startswith("fairseq.criterions.") and hasattr(module, "label_smoothed_nll_loss")
    ]
    assert len(users) >= 2
    assert all(user.label_smoothed_nll_loss.replacement is label_smoothed_nll_loss.replacement for user in users)
