"""Diverse beam search does not depend on how the sentences of a batch are numbered."""

from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.search import DiverseBeamSearch
from torch import Tensor

import fairseq_stack.models  # noqa: F401  (installs what is tested)

GROUPS, BEAM, SENTENCES, STEPS = 2, 4, 3, 4


def dictionary() -> Dictionary:
    made = Dictionary()
    for symbol in "abcdefgh":
        made.add_symbol(symbol)
    return made


def search(numbers: list[int], finished_after_first_step: int | None = None) -> list[Tensor]:
    """The symbols chosen at each step, for sentences of these numbers; one may leave the batch."""
    symbols = dictionary()
    strategy = DiverseBeamSearch(symbols, GROUPS, diversity_strength=2.0, diversity_discount=0.5)
    rows = torch.arange(SENTENCES)
    chosen = []
    scores = torch.zeros(SENTENCES, BEAM, STEPS)
    for step in range(STEPS):
        torch.manual_seed(step)
        log_probs = torch.randn(SENTENCES, BEAM, len(symbols)).log_softmax(-1)[rows]
        _, indices, _ = strategy.step(step, log_probs, scores[rows, :, :step], None, torch.tensor(numbers)[rows])
        chosen.append(indices)
        if step == 0 and finished_after_first_step is not None:
            rows = rows[rows != finished_after_first_step]
    return chosen


@pytest.mark.parametrize("finished", [None, 0, 1])
@pytest.mark.parametrize("numbers", [[2, 0, 1], [7, 100, 5]], ids=["permuted", "beyond-the-batch"])
def test_numbers_do_not_matter(numbers: list[int], finished: int | None) -> None:
    expected = search([0, 1, 2], finished)
    for actual, step in zip(search(numbers, finished), expected, strict=True):
        assert torch.equal(actual, step)
