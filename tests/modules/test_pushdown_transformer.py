"""The syntactic language model: golden values, one word at a time, layers of several kinds, and pads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    PushdownAttention,
    PushdownTransformer,
    SuperpositionStackAttention,
    attachment_head,
    attachment_log_probabilities,
)
from fairseq_stack.modules.pushdown_attention import PARAMETRIZATIONS, Parametrization
from fairseq_stack.modules.pushdown_transformer import Attention
from fairseq_stack.ops import legal_attachments, stack_tape
from tests.helpers import assert_normwise_close, each_golden_file
from tests.modules.pushdown import random_attachments, tied, tiny_model


@each_golden_file("pushdown/tiny_model_forward.npz")
def test_golden_forward(path: Path) -> None:
    golden = np.load(path)
    model = tiny_model()
    tokens, following, tape, attachments = (torch.tensor(golden[x]) for x in ("tokens", "next", "tape", "attachments"))
    with_root = torch.nn.functional.pad(attachments, (1, 0))
    assert torch.equal(stack_tape(with_root), tape)
    hidden = model(tokens, tape)
    assert_normwise_close(hidden, golden["hidden"], 1e-9)
    assert_normwise_close(model.word_log_probabilities(hidden), golden["log_p_words"], 1e-9)
    assert_normwise_close(model.attachment_scores(hidden, following, tape), golden["attachment_logits"], 1e-9)


def build(
    attentions: Sequence[Attention], parametrization: Parametrization = "figures", **options: Any
) -> PushdownTransformer:
    head = attachment_head(12, 3, parametrization)
    embedding, output = tied(9, 12, bias=True)
    model = PushdownTransformer(
        embedding, output, attentions, head, root=0, end=0, feedforward_size=8, max_positions=20, **options
    )
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return model.double().eval()


def layers(name: str) -> list[Attention]:
    kinds: dict[str, list[Attention]] = {
        "equations": [PushdownAttention(12, 3, 3, "equations")],
        "figures": [PushdownAttention(12, 3, 3, "figures"), PushdownAttention(12, 2, 2, "figures")],
        "released": [PushdownAttention(12, 3, 3, "released")],
        "base": [PushdownAttention(12, 3, None)],
        "mixed": [
            SuperpositionStackAttention(12, 5),
            PushdownAttention(12, 3, 3),
            NondeterministicStackAttention(12, 2, 2, 3),
            PushdownAttention(12, 3, None, "released"),
        ],
    }
    return kinds[name]


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("name", [*PARAMETRIZATIONS, "base", "mixed"])
def test_steps_equal_the_sequence(name: str, norm_first: bool) -> None:
    """With any kinds of layers: log-probabilities of words and of attachments, and reordered in between."""
    heads: dict[str, Parametrization] = {"released": "released", "mixed": "released", "equations": "equations"}
    model = build(layers(name), heads.get(name, "figures"), norm_first=norm_first, scale_embeddings=True)
    attachments, words = random_attachments(2, 8), torch.randint(1, 9, (2, 8))
    words[:, 0] = model.root
    tape, legal = stack_tape(attachments)[:, :7, :7], legal_attachments(attachments)[:, :7, :8]
    hidden = model(words[:, :7], tape)
    log_words = model.word_log_probabilities(hidden)
    scores = model.attachment_scores(hidden, words[:, 1:], tape).masked_fill(~legal, -math.inf)
    state = model.initial_state(2)
    rows = torch.arange(2)
    for t in range(7):
        if t == 3:
            rows = torch.tensor([1, 0, 1])
            state = state.reorder(rows)
        assert_normwise_close(model.next_words(state), log_words[rows, t], 1e-11)
        actual = model.next_attachments(state, words[rows, t + 1])
        assert_normwise_close(actual, scores[rows, t, : t + 2].log_softmax(1), 1e-11)
        state = model.step(state, words[rows, t + 1], attachments[rows, t + 1])


def test_pads_and_other_sentences_change_nothing() -> None:
    model = build(layers("mixed"))
    attachments = torch.stack([random_attachments(1, 8)[0], torch.tensor([0, 1, 1, 3, 2, 5, 6, 7])])
    words = torch.randint(1, 9, (2, 8))
    alone = words[1:, :5]
    hidden = model(words, stack_tape(attachments))
    assert_normwise_close(hidden[1:, :5], model(alone, stack_tape(attachments[1:, :5])), 1e-13)


def test_the_end_attaches_to_root_only() -> None:
    model = tiny_model()
    state = model.initial_state(2)
    for attached in (1, 1):
        state = model.step(state, torch.tensor([4, 5]), torch.tensor([attached, attached]))
    words = torch.tensor([model.end, 3])
    of_legal = model.next_attachments(state, words)
    assert of_legal[0].tolist() == [0, -math.inf, -math.inf, -math.inf]
    assert (of_legal[1] > -math.inf).tolist() == [False, False, True, True]
    of_all = model.next_attachments(state, words, legal_only=False)
    assert torch.equal(of_all > -math.inf, of_legal > -math.inf)
    assert (of_all.exp().sum(1) < 0.999).all()


def test_more_tokens_than_positions() -> None:
    model = build(layers("base"))
    with pytest.raises(ValueError, match=r"^tokens: expected at most 20, the number of positions, got 21$"):
        model(torch.zeros(1, 21).long(), stack_tape(torch.arange(21).unsqueeze(0)))
    state = model.initial_state(1)
    for k in range(1, 20):
        state = model.step(state, torch.tensor([1]), torch.tensor([k]))
    with pytest.raises(ValueError, match=r"^tokens: expected at most 20, "):
        model.step(state, torch.tensor([1]), torch.tensor([20]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("parametrization", PARAMETRIZATIONS)
def test_low_precision(parametrization: Parametrization, dtype: torch.dtype) -> None:
    """Under autocast, and with parameters of low precision: nearly as in float32, and gradients are finite."""
    model = build([PushdownAttention(12, 3, 3, parametrization)], parametrization).float()
    for parameter in model.parameters():
        parameter.data *= 0.5
    attachments, words = random_attachments(2, 8), torch.randint(1, 9, (2, 8))
    tape = stack_tape(attachments)[:, :7, :7]

    def log_probabilities(model: PushdownTransformer) -> tuple[Tensor, Tensor]:
        hidden = model(words[:, :7], tape)
        scores = model.attachment_scores(hidden, words[:, 1:], tape)
        return model.word_log_probabilities(hidden), attachment_log_probabilities(scores).clamp(min=-99)

    expected = log_probabilities(model)
    with torch.autocast("cpu", dtype=dtype):
        mixed = log_probabilities(model)
    (mixed[0].sum() + mixed[1].sum()).backward()
    assert all(x.grad is not None and x.grad.isfinite().all() for x in model.parameters())
    for computed in (mixed, log_probabilities(model.to(dtype))):
        for actual, wanted in zip(computed, expected, strict=True):
            assert actual.dtype == torch.float32
            assert_normwise_close(actual, wanted, 0.05)


def test_all_parameters_are_trained() -> None:
    model = build(layers("mixed"), "released")
    attachments, words = random_attachments(3, 8), torch.randint(1, 9, (3, 8))
    tape = stack_tape(attachments)[:, :7, :7]
    hidden = model(words[:, :7], tape)
    log_words = model.word_log_probabilities(hidden).gather(2, words[:, 1:].unsqueeze(2))
    log_attachments = model.attachment_scores(hidden, words[:, 1:], tape).log_softmax(2)
    loss = -log_words.mean() - log_attachments.gather(2, attachments[:, 1:].unsqueeze(2)).mean()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all() and parameter.grad.any(), name
