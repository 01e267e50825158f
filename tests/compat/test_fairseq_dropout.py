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


def test_pytorch_attends_where_nothing_is_gained(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = MultiheadAttention(D, 2, dropout=0.1)
    assert attention.train().skip_embed_dim_check
    assert not attention.eval().skip_embed_dim_check
    assert not MultiheadAttention(D, 2).train().skip_embed_dim_check
    monkeypatch.setattr(sys.modules[draws_factors.__module__], "library", lambda: None)
    assert not attention.train().skip_embed_dim_check
