"""``fairseq.modules.fairseq_dropout``: random numbers that are drawn faster on CPUs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.ops import dropout


@replaces("fairseq.modules.fairseq_dropout:FairseqDropout.forward", scriptable=True)
def forward(self: Any, x: Tensor, inplace: bool = False) -> Tensor:
    """On a CPU, draw the random numbers of dropout several times faster; their distribution is the same.

    Unnecessary with a PyTorch that draws several random numbers at a time on CPUs.
    """
    if not (self.p > 0 and (self.training or self.apply_during_inference)):
        return x
    if torch.jit.is_scripting():
        return functional.dropout(x, self.p, True, inplace)
    return dropout(x, self.p, True, inplace)
