"""Outputs of one pass: several models together."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from fairseq_stack.search.one_pass import OnePassGenerator


class Fixed(nn.Module):
    """A model that gives the same log-probabilities for any input."""

    def __init__(self, *probabilities: float) -> None:
        super().__init__()
        self.log_probs = torch.tensor([[probabilities]]).log()

    def forward(self, **net_input: Any) -> Tensor:
        return self.log_probs

    def get_normalized_probs(self, output: Tensor, log_probs: bool, sample: dict[str, Any]) -> Tensor:
        return output


def test_an_ensemble_averages_probabilities() -> None:
    """Not their logarithms, by which the second word would be the best."""
    models = [Fixed(0.88, 0.1, 0.02), Fixed(0.02, 0.3, 0.68)]
    generator = OnePassGenerator(Dictionary(), blank=None)
    sample = {"net_input": {"src_lengths": torch.tensor([1])}, "is_scored": torch.tensor([[True]])}
    ((hypothesis,),) = generator.generate(models, sample)
    assert hypothesis["tokens"].tolist() == [Dictionary().nspecial]
