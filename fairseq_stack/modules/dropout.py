"""Dropout as a module."""

from __future__ import annotations

from torch import Tensor, nn

from fairseq_stack.ops import dropout


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, which on CPUs draws its random numbers faster; see :func:`fairseq_stack.ops.dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training, self.inplace)
