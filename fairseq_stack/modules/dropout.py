"""Dropout as a module."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from fairseq_stack.ops import dropout


class Dropout(nn.Dropout):
    """``torch.nn.Dropout``, which on CPUs draws its random numbers faster; see :func:`fairseq_stack.ops.dropout`."""

    _retained = False

    def forward(self, input: Tensor) -> Tensor:
        return dropout(input, self.p, self.training or self._retained, self.inplace)

    def make_generation_fast_(
        self, name: str, retain_dropout: bool = False, retain_dropout_modules: Any = None, **unused: Any
    ) -> None:
        """Remain in effect in evaluation, as fairseq asks for with ``--retain-dropout`` for all modules."""
        self._retained = retain_dropout and retain_dropout_modules is None
