"""Attachment heads: golden values, the naive form, one token at a time, and both ways of normalisation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import (
    AttachmentHead,
    KeyedAttachmentHead,
    attachment_head,
    attachment_log_probabilities,
)
from fairseq_stack.modules.pushdown_attention import Parametrization
from fairseq_stack.ops import stack_tape
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


@pytest.mark.parametrize(("parametrization", "sees"), [("equations", False), ("figures", True), ("released", True)])
def test_depths(parametrization: Parametrization, sees: bool) -> None:
    """Which heads see depths; beyond the table there are none."""
    model, hidden, next_words, _ = model_and_inputs(parametrization)
    tape = torch.zeros(2, 7, 7, dtype=torch.long)
    without, with_depths, beyond = (model(hidden, next_words, tape + depth) for depth in (0, 2, 9))
    assert torch.equal(without, with_depths) != sees
    assert torch.equal(beyond, with_depths)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"^size, depth_size: the head of Eq\. 5 has neither$"):
        attachment_head(6, 3, "equations", size=4)
    with pytest.raises(ValueError, match=r"^num_depths: expected at least 1"):
        attachment_head(6, 0)
    with pytest.raises(ValueError, match=r"^parametrization: expected one of"):
        attachment_head(6, 3, "fig8")  # type: ignore[arg-type]
