"""The dynamic oracle: against all ways to go on, from all parses of a few words."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import StackTapeState, legal_attachments, oracle_attachments
from fairseq_stack.ops.stack_tape.pytorch import nodes_pytorch
from tests.helpers import hostile
from tests.ops.stack_tape.parses import random_parse


def all_parses(words: int) -> Tensor:
    """r_0, ..., r_n of each parse."""
    state, parses = StackTapeState.initial(batch_size=1), torch.zeros(1, 1, dtype=torch.long)
    for _ in range(words):
        rows, attached = state.legal().nonzero().unbind(1)
        state = state.reorder(rows).step(attached)
        parses = torch.cat([parses[rows], attached.unsqueeze(1)], 1)
    return parses


@pytest.mark.parametrize("words", [3, 4, hostile(5)])
def test_no_gold_node_is_lost(words: int) -> None:
    """After o_k, the best parse that is still possible has as many gold nodes as the best one before it."""
    parses = all_parses(words)
    nodes = nodes_pytorch(parses).float()
    shared = torch.einsum("pba,gba->pg", nodes, nodes)  # gold nodes of the tree g that the parse p builds
    for index, gold in enumerate(parses):
        best = oracle_attachments(parses, gold.expand_as(parses))
        for parse, chosen in zip(parses, best, strict=True):
            for k in range(1, words + 1):
                goes_on = (parses[:, :k] == parse[:k]).all(1)
                takes_advice = goes_on & (parses[:, k] == chosen[k])
                assert takes_advice.any(), "illegal"
                assert shared[takes_advice, index].max() == shared[goes_on, index].max()


def test_examples() -> None:
    gold = torch.tensor([[0, 1, 1, 3, 2]])  # ((The dog) (is happy))
    assert torch.equal(oracle_attachments(gold, gold), gold)
    # "dog" stays alone: "happy" attaches to "The", where the gold tree of all begins.
    assert oracle_attachments(torch.tensor([[0, 1, 2, 3, 4]]), gold).tolist() == [[0, 1, 1, 3, 1]]
    # "is" attaches too early: "happy" attaches to what it is part of.
    assert oracle_attachments(torch.tensor([[0, 1, 1, 2, 4]]), gold).tolist() == [[0, 1, 1, 3, 3]]
    # Brackets "( ( ) )": the second one was taken for a closing one. Each closing one attaches to what its own is in.
    opened_and_closed = torch.tensor([[0, 1, 2, 2, 1]])
    assert oracle_attachments(torch.tensor([[0, 1, 1, 2, 4]]), opened_and_closed).tolist() == [[0, 1, 2, 2, 3]]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Two batches of parses of the same size."""
    words = draw(st.integers(0, 12))
    predicted, gold = (torch.tensor([random_parse(draw, words, ends=False) for _ in range(3)]) for _ in range(2))
    return predicted, gold


@settings(max_examples=50)
@given(parses=pairs())
def test_batches(parses: tuple[Tensor, Tensor]) -> None:
    """It is legal in each row, and the gold parse up to the first difference."""
    predicted, gold = parses
    best = oracle_attachments(predicted, gold)
    chosen = legal_attachments(predicted)[:, :-1].gather(2, best[:, 1:].unsqueeze(2))
    assert chosen.all()
    is_gold_so_far = (predicted == gold).cumprod(1)[:, :-1].bool()
    assert torch.equal(best[:, 1:][is_gold_so_far], gold[:, 1:][is_gold_so_far])
    alone = [oracle_attachments(*rows) for rows in zip(predicted.split(1), gold.split(1), strict=True)]
    assert torch.equal(best, torch.cat(alone))


def test_wrong_arguments() -> None:
    parse = torch.tensor([[0, 1, 1]])
    with pytest.raises(ValueError, match=r"^gold: expected shape \(1, 3\) like attachments, got \(1, 2\)$"):
        oracle_attachments(parse, parse[:, :2])
    with pytest.raises(ValueError, match=r"^attachments: token 2 of row 0 attaches to 3; expected 0 or 1 or 2$"):
        oracle_attachments(parse, torch.tensor([[0, 1, 3]]))
