"""fairseq's softmax rounds nothing down."""

from __future__ import annotations

import pytest
import torch
from fairseq import utils

pytestmark = pytest.mark.usefixtures("shims")


@pytest.mark.parametrize("function", ["softmax", "log_softmax"])
@pytest.mark.parametrize(
    ("dtype", "computed_in"),
    [
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ],
    ids=str,
)
def test_softmax_rounds_nothing_down(function: str, dtype: torch.dtype, computed_in: torch.dtype) -> None:
    logits = torch.randn(3, 5, dtype=torch.float64).to(dtype)
    expected = getattr(torch, function)(logits.to(computed_in), dim=-1)
    assert torch.equal(getattr(utils, function)(logits, dim=-1), expected)
