"""fairseq's dropout draws its random numbers by the compiled kernels, also for the weights of attention."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from fairseq.modules import FairseqDropout, MultiheadAttention
from torch import Tensor
from torch.nn import functional

from fairseq_stack.ops import draws_factors, dropout
from tests.helpers import use_instruction_set

N, B, D = 7, 3, 8
FUTURE = torch.full((N, N), -torch.inf).triu(1)
PADDING = torch.tensor([[False] * N, [True] * 2 + [False] * (N - 2), [False] * N])


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    use_instruction_set("baseline", monkeypatch)
    assert draws_factors(torch.ones(1))


def draw(function: Any, *args: Any) -> Tensor:
    torch.manual_seed(5)
    return function(*args)


def test_training_and_evaluation() -> None:
    module, x = FairseqDropout(0.3), torch.randn(1000)
    assert torch.equal(draw(module, x), draw(dropout, x, 0.3))
    module.eval()
    assert module(x) is x
    module.apply_during_inference = True
    assert torch.equal(draw(module, x), draw(dropout, x, 0.3))
    assert FairseqDropout(0.0)(x) is x


def test_it_can_be_scripted() -> None:
    module, x = torch.jit.script(FairseqDropout(0.3)), torch.randn(1000)
    assert torch.equal(draw(module, x), draw(functional.dropout, x, 0.3))


def attend(attention: MultiheadAttention, x: Tensor) -> Tensor:
    """With the masks of a decoder and of a batch with padding on the left."""
    outputs, _ = attention(x, x, x, PADDING, need_weights=False, attn_mask=FUTURE)
    rows: Tensor = outputs.transpose(0, 1)[~PADDING]
    return rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_attention_is_the_same_if_it_drops_nothing(dtype: torch.dtype) -> None:
    attention = MultiheadAttention(D, 2, dropout=2**-40, self_attention=True).to(dtype)
    x = torch.randn(N, B, D, dtype=dtype, requires_grad=True)
    expected = attend(attention.eval(), x)
    outputs = attend(attention.train(), x)
    torch.testing.assert_close(outputs, expected)
    inputs = [x, *attention.parameters()]
    cotangent = torch.randn_like(outputs)
    for gradient, other in zip(
        torch.autograd.grad(outputs, inputs, cotangent), torch.autograd.grad(expected, inputs, cotangent), strict=True
    ):
        torch.testing.assert_close(gradient, other)


def test_weights_of_attention_are_dropped() -> None:
    """Every value is 1, so an output is the sum of its weights, of which each is 0 or doubled."""
    attention = MultiheadAttention(1, 1, dropout=0.5, self_attention=True, bias=True)
    for name, parameter in attention.named_parameters():
        torch.nn.init.constant_(parameter, 1.0 if name in ("v_proj.bias", "out_proj.weight") else 0.0)
    x = torch.zeros(4, 5000, 1)
    sums, _ = attention.train()(x, x, x, need_weights=False)
    counts = torch.bincount((sums.flatten() * 2).round().long(), minlength=5) / sums.numel()
    torch.testing.assert_close(counts, torch.tensor([1, 4, 6, 4, 1]) / 16, atol=0.02, rtol=0)
    assert torch.equal(attention.eval()(x, x, x, need_weights=False)[0], torch.ones_like(x))


@pytest.mark.parametrize("mask", [FUTURE < 0, FUTURE.expand(2 * B, N, N)], ids=["boolean", "heads"])
def test_masks_that_fairseq_does_not_add(mask: Tensor) -> None:
    attention, x = MultiheadAttention(D, 2, dropout=2**-40, self_attention=True), torch.randn(N, B, D)
    expected = attention.eval()(x, x, x, need_weights=False, attn_mask=FUTURE)[0]
    for given in (attention(x, x, x, attn_mask=mask), attention.train()(x, x, x, None, None, False, False, mask)):
        torch.testing.assert_close(given[0], expected)


def test_pruned_heads_stay_pruned() -> None:
    attention, x = MultiheadAttention(D, 2, dropout=2**-40, self_attention=True), torch.randn(N, B, D)
    attention._adaptive_prune_heads(attention._get_reserve_head_index(1))
    attention._set_skip_embed_dim_check()
    torch.testing.assert_close(attention.train()(x, x, x)[0], attention.eval()(x, x, x)[0])


@pytest.mark.parametrize(("p", "training", "has_kernels"), [(0.1, False, True), (0.0, True, True), (0.1, True, False)])
def test_pytorch_attends_where_nothing_is_gained(
    p: float, training: bool, has_kernels: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_kernels:
        monkeypatch.setattr(sys.modules[draws_factors.__module__], "library", lambda: None)
    attention, x = MultiheadAttention(D, 2, dropout=p, self_attention=True).train(training), torch.randn(N, B, D)
    monkeypatch.setattr(attention, "apply_sparse_mask", None)  # fairseq's own attention would call it
    assert attend(attention, x).isfinite().all()


def test_fairseq_attends_where_weights_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = MultiheadAttention(D, 2, dropout=0.1, self_attention=True)
    monkeypatch.setattr(attention, "apply_sparse_mask", None)
    with pytest.raises(TypeError, match="not callable"):
        attend(attention, torch.randn(N, B, D))
