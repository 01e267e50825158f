"""fairseq's softmax rounds nothing down, and each command has the changes."""

from __future__ import annotations

from argparse import Namespace

import pytest
import torch
from fairseq import utils
from fairseq.modules import MultiheadAttention
from fairseq_cli import train

pytestmark = pytest.mark.usefixtures("shims")


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
def test_softmax_rounds_nothing_down(function: str) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        logits = torch.randn(3, 5, dtype=torch.float64).to(dtype)
        computed_in = torch.promote_types(dtype, torch.float32)
        expected = getattr(torch, function)(logits.to(computed_in), dim=-1)
        assert torch.equal(getattr(utils, function)(logits, dim=-1), expected), dtype


def test_torchscript_reads_it() -> None:
    attention = MultiheadAttention(8, 2).eval()
    scripted, x = torch.jit.script(attention), torch.randn(3, 1, 8)
    assert torch.equal(scripted(x, x, x)[0], attention(x, x, x)[0])


def test_a_softmax_over_nothing_is_zero() -> None:
    logits = torch.tensor([[0.0, 1.0], [-torch.inf, -torch.inf], [torch.nan, 0.0]], requires_grad=True)
    probabilities = utils.softmax(logits, dim=-1)
    assert torch.equal(probabilities[0], logits[0].softmax(0))
    assert probabilities[1].tolist() == [0, 0]
    assert probabilities[2].isnan().all()
    (gradient,) = torch.autograd.grad(probabilities[:2].square().sum(), logits)
    assert gradient[:2].isfinite().all()
    assert gradient[1].tolist() == [0, 0]


@pytest.mark.parametrize("max_norm", [0.0, 0.5, 1e6])
@pytest.mark.parametrize("kind", ["float32", "bfloat16", "expert", "one", "nan"])
def test_clipping_is_the_same(kind: str, max_norm: float) -> None:
    def parameters() -> list[torch.Tensor]:
        torch.manual_seed(0)
        dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
        made = [torch.randn(size, dtype=dtype, requires_grad=True) for size in ((40, 30), (7,), (), (300, 11))]
        for parameter in made[:3]:  # the last one has no gradient
            parameter.grad = torch.randn_like(parameter)
        if kind == "expert":
            made[1].expert = True  # type: ignore[attr-defined]
        if kind == "nan":
            made[1].grad[2] = torch.nan  # type: ignore[index]
        return made[:1] if kind == "one" else made

    ours, theirs = parameters(), parameters()
    norm = utils.clip_grad_norm_(iter(ours), max_norm)
    expected = utils.clip_grad_norm_.__wrapped__(iter(theirs), max_norm)
    torch.testing.assert_close(norm, expected, rtol=0, atol=0, equal_nan=True)
    for parameter, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(parameter.grad, other.grad, rtol=0, atol=0, equal_nan=True)


def test_norms_are_added_up_over_workers() -> None:
    one = [torch.ones(3, requires_grad=True) for _ in range(2)]
    for parameter in one:
        parameter.grad = torch.ones(3)
    assert utils.clip_grad_norm_(one, 1.0, lambda norm: 2 * norm) == 2 * torch.tensor(6.0).sqrt()
    assert one[0].grad is not None
    torch.testing.assert_close(one[0].grad, torch.full((3,), 1 / (2 * 6**0.5)))


def test_a_command_that_was_imported_after_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command begins with ``import_user_module``."""
    utils.import_user_module(Namespace(user_dir=None))
    replacement = train.validate.replacement
    monkeypatch.setattr(train, "validate", train.validate.__wrapped__)
    utils.import_user_module(Namespace(user_dir=None))
    assert train.validate.replacement is replacement
