"""Attachment heads: golden values, the naive form, one token at a time, and both ways of normalisation."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import (
    AttachmentHead,
    KeyedAttachmentHead,
    attachment,
    attachment_head,
    attachment_log_probabilities,
)
from fairseq_stack.modules.pushdown_attention import PARAMETRIZATIONS, Parametrization
from fairseq_stack.ops import legal_attachments, stack_tape
from fairseq_stack.ops.depth_scores.reference import composed_scores_reference
from tests.helpers import assert_normwise_close, each_golden_file
from tests.modules.pushdown import check_gradients, golden_head, golden_parameters, random_attachments, renamed


@each_golden_file("pushdown/attachment_*.npz")
def test_golden_attachment_head(path: Path) -> None:
    golden = np.load(path)
    model = golden_head(golden_parameters(golden, "param:"))
    x, next_word = (torch.tensor(golden[name]).requires_grad_() for name in ("x", "next_word"))
    tape = torch.tensor(golden["tape"]) if "tape" in golden else torch.zeros(*x.shape[:2], x.size(1)).long()
    logits = model(x, next_word, tape)
    assert_normwise_close(logits, golden["logits"], 1e-9)
    is_finite = logits.isfinite()
    (logits[is_finite] * torch.tensor(golden["cotangent"])[is_finite]).sum().backward()
    check_gradients(model, renamed(golden_parameters(golden, "grad:")), 1e-9)
    for name, tensor in (("x", x), ("next_word", next_word)):
        assert tensor.grad is not None
        assert_normwise_close(tensor.grad, golden[f"grad_{name}"], 1e-9, name)


@each_golden_file("pushdown/attachment_fig8_*.npz")
def test_golden_losses(path: Path) -> None:
    golden = np.load(path)
    logits, legal, target = (torch.tensor(golden[name]) for name in ("logits", "legal", "target"))
    for name, mask in (("all", None), ("legal", legal)):
        log_p = attachment_log_probabilities(logits, mask)
        assert_normwise_close(log_p, golden[f"log_p_{name}"], 1e-9)
        loss = -log_p.gather(2, target.unsqueeze(2)).mean()
        assert_normwise_close(loss, golden[f"loss_{name}"], 1e-9)


def model_and_inputs(
    parametrization: Parametrization, depths: int | None = 3
) -> tuple[AttachmentHead, Tensor, Tensor, Tensor]:
    model = attachment_head(6, depths, parametrization).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    hidden, next_words = torch.randn(2, 2, 7, 6, dtype=torch.float64)
    return model, hidden, next_words, random_attachments(2, 7)


@pytest.mark.parametrize("parametrization", ["figures", "released"])
def test_lean_form_equals_naive_form(parametrization: Parametrization, monkeypatch: pytest.MonkeyPatch) -> None:
    model, hidden, next_words, attachments = model_and_inputs(parametrization)
    inputs, tape = [hidden.requires_grad_(), next_words.requires_grad_(), *model.parameters()], stack_tape(attachments)
    cotangent = torch.randn(2, 7, 8, dtype=torch.float64)

    def gradients() -> tuple[Tensor, ...]:
        logits = model(hidden, next_words, tape)
        assert torch.equal(logits.isfinite(), torch.ones(7, 8, dtype=torch.bool).tril(1).expand(2, -1, -1))
        value = (logits * cotangent).masked_fill(logits == -math.inf, 0)
        return (value, *torch.autograd.grad(value.sum(), inputs))

    lean = gradients()

    def naive_scores(queries: Tensor, keys: Tensor, depths: Tensor, tape: Tensor) -> Tensor:
        return composed_scores_reference(queries, keys, depths, tape.clamp(max=2))

    monkeypatch.setattr(attachment, "composed_scores", naive_scores)
    for actual, expected in zip(lean, gradients(), strict=True):
        assert_normwise_close(actual, expected, 1e-12)


def test_dropout_of_the_hidden_layer_of_keys() -> None:
    """Where all of it is dropped, only the bias of the second layer is left, which is the same for all keys."""
    _, hidden, next_words, attachments = model_and_inputs("figures")
    model = attachment_head(6, 3, dropout=1.0).double()
    assert isinstance(model, KeyedAttachmentHead) and model.key is not None
    model.query.dropout.p = model.own_key.dropout.p = 0.0
    torch.nn.init.normal_(model.key.second.bias)
    scores = model(hidden, next_words, stack_tape(attachments))
    for t in range(1, 7):
        assert_normwise_close(scores[:, t, 1 : t + 1], scores[:, t, :1].expand(-1, t), 1e-12)


@pytest.mark.parametrize("depths", [3, None])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_last_tokens(parametrization: Parametrization, depths: int | None) -> None:
    """The scores for the last tokens only, from kept keys, and without what comes later."""
    model, hidden, next_words, attachments = model_and_inputs(parametrization, depths)
    tape = stack_tape(attachments)
    expected, keys = model(hidden, next_words, tape), model.keys(hidden)
    for length in range(1, 8):
        for first in {0, length - 1, length // 2}:
            part = slice(first, length)
            actual = model.scores(hidden[:, part], next_words[:, part], keys[:, :length], tape[:, part, :length])
            assert_normwise_close(actual, expected[:, part, : length + 1], 1e-12)


@pytest.mark.parametrize(("parametrization", "sees"), [("equations", False), ("figures", True), ("released", True)])
def test_depths(parametrization: Parametrization, sees: bool) -> None:
    """Which heads see depths; beyond the table there are none."""
    model, hidden, next_words, _ = model_and_inputs(parametrization)
    tape = torch.zeros(2, 7, 7, dtype=torch.long)
    without, with_depths, beyond = (model(hidden, next_words, tape + depth) for depth in (0, 2, 9))
    assert torch.equal(without, with_depths) != sees
    assert torch.equal(beyond, with_depths)


def test_probabilities() -> None:
    """Of the legal attachments they sum to 1; of all, the illegal ones have a share."""
    model, hidden, next_words, attachments = model_and_inputs("figures")
    logits = model(hidden, next_words, stack_tape(attachments))
    legal = legal_attachments(attachments)
    of_legal = attachment_log_probabilities(logits, legal)
    assert_normwise_close(of_legal.exp().sum(2), torch.ones(2, 7), 1e-14)
    assert torch.equal(of_legal > -math.inf, legal)
    of_all = attachment_log_probabilities(logits)
    assert_normwise_close(of_all.exp().sum(2), torch.ones(2, 7), 1e-14)
    ratios = (of_legal - of_all)[legal.nonzero(as_tuple=True)]
    assert (ratios >= 0).all() and (ratios > 0.1).any()


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"^size, depth_size: the head of Eq\. 5 has neither$"):
        attachment_head(6, 3, "equations", size=4)
    with pytest.raises(ValueError, match=r"^num_depths: expected at least 1"):
        attachment_head(6, 0)
    with pytest.raises(ValueError, match=r"^parametrization: expected one of"):
        attachment_head(6, 3, "fig8")  # type: ignore[arg-type]
