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


def test_a_command_that_was_imported_after_the_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command begins with ``import_user_module``."""
    utils.import_user_module(Namespace(user_dir=None))
    replacement = train.validate.replacement
    monkeypatch.setattr(train, "validate", train.validate.__wrapped__)
    utils.import_user_module(Namespace(user_dir=None))
    assert train.validate.replacement is replacement
