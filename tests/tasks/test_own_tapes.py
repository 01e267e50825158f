"""Batches with the tapes of the model's own decisions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_stack.ops import legal_attachments, stack_tape
from fairseq_stack.tasks._attachments import with_parses
from fairseq_stack.tasks._own_tapes import with_own_tapes
from tests.models.building import build_pushdown_model, make_dictionary

DICTIONARY = make_dictionary(9)
EOS, PAD = DICTIONARY.eos(), DICTIONARY.pad()
ATTACHMENTS = torch.tensor([[1, 1, 3, 2, 0], [1, 0, 3, 4, 5], [1, 2, 2, 0, 5]])
PARSES = torch.tensor([[0, 1, 1, 3, 2], [0, 1, 2, 3, 4], [0, 1, 2, 2, 4]])


def a_batch() -> dict[str, Any]:
    """Three sentences with their gold parses."""
    tokens, lengths = torch.randint(4, 4 + 9, (3, 6)), (ATTACHMENTS == 0).nonzero()[:, 1] + 1
    places = torch.arange(6)
    tokens[:, 0] = EOS
    tokens[places == lengths.unsqueeze(1)], tokens[places > lengths.unsqueeze(1)] = EOS, PAD
    source = tokens[:, :-1].masked_fill(places[:-1] >= lengths.unsqueeze(1), PAD)
    batch = {"id": torch.tensor([7, 2, 5]), "net_input": {"src_tokens": source}, "target": tokens[:, 1:]}
    return with_parses(batch, PARSES, ATTACHMENTS)


def a_model() -> Any:
    flags = ["--decoder-embed-dim=12", "--decoder-ffn-embed-dim=16", "--decoder-attention-heads=3"]
    flags += ["--stack-layers=pushdown", "--pushdown-parametrization=figures"]
    torch.manual_seed(4)  # Some models leave all words alone.
    model = build_pushdown_model("pushdown_transformer_lm", DICTIONARY, *flags).double()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.5)
    return model


def own_parse(model: Any, tokens: Tensor) -> list[int]:
    """The model's decisions for one sentence, word by word."""
    network = model.decoder.network
    state, decided = network.initial_state(1), [0]
    for word in tokens[1:]:
        chosen = network.next_attachments(state, word.view(1)).argmax(1)
        state = network.step(state, word.view(1), chosen)
        decided.append(int(chosen))
    return decided


def test_all_tapes_are_own() -> None:
    """As decided word by word; what words are to attach to is legal on these tapes, and right where gold is."""
    model, batch = a_model(), a_batch()
    made = with_own_tapes(batch, model.decoder, 1.0, seed=1, update=0)
    tokens = batch["net_input"]["src_tokens"]
    parses = torch.arange(5).repeat(3, 1)
    model.eval()
    for row, sentence in zip(parses, tokens, strict=True):
        decided = own_parse(model, sentence[sentence != PAD])
        row[: len(decided)] = torch.tensor(decided)
    gold = PARSES
    assert (parses != gold).any(1)[[0, 2]].all(), "the model parses as the gold trees are"
    assert torch.equal(made["net_input"]["tape"], stack_tape(parses))
    assert torch.equal(made["legal_attachments"], legal_attachments(parses, batch["target"] == EOS))
    is_word = batch["target"] != PAD
    assert made["legal_attachments"].gather(2, made["attachments"].unsqueeze(2)).squeeze(2)[is_word].all()
    assert torch.equal(made["attachments"] == 0, ATTACHMENTS == 0)
    is_gold_so_far = (parses == gold).cumprod(1).bool()
    assert torch.equal(made["attachments"][is_gold_so_far], ATTACHMENTS[is_gold_so_far])
    assert int(made["wrong_tapes"]) == int((parses != gold).any(1).sum())


def test_windows() -> None:
    """Two sentences of three words: both ends attach to ROOT of their sentence, whatever the model decides."""
    attached, gold = torch.tensor([[1, 1, 3, 0, 5, 5, 7, 4]]), torch.tensor([[0, 1, 1, 3, 0, 5, 5, 7]])
    model, tokens = a_model(), torch.randint(4, 4 + 9, (1, 9))
    tokens[0, ::4] = EOS
    batch = {"id": torch.tensor([3]), "net_input": {"src_tokens": tokens[:, :-1]}, "target": tokens[:, 1:]}
    made = with_own_tapes(with_parses(batch, gold, attached), model.decoder, 1.0, seed=1, update=0)
    parse = own_parse(model.eval(), tokens[0, :-1])
    assert parse != gold[0].tolist() and parse[4] == 0
    assert torch.equal(made["net_input"]["tape"], stack_tape(torch.tensor([parse])))
    assert made["attachments"][0, 3::4].tolist() == [0, 4]
    assert made["legal_attachments"].gather(2, made["attachments"].unsqueeze(2)).all()
    assert made["legal_attachments"][0, 3::4].sum(1).tolist() == [1, 1]


def test_a_share_of_the_tapes() -> None:
    """Each sentence is drawn with this probability, by the seed, the update and the sentences alone."""
    model, batch = a_model(), a_batch()
    all_own, gold = (with_own_tapes(batch, model.decoder, share, seed=1, update=0) for share in (1.0, 0.0))
    for name in ("attachments", "legal_attachments"):
        assert torch.equal(gold[name], batch[name])
    assert torch.equal(gold["net_input"]["tape"], batch["net_input"]["tape"]) and not gold["wrong_tapes"]
    is_own = torch.empty(80, 3, dtype=torch.bool)
    for update, drawn in enumerate(is_own):
        torch.manual_seed(update)
        some = with_own_tapes(batch, model.decoder, 0.5, seed=1, update=update)["net_input"]["tape"]
        for row in range(3):
            drawn[row] = not torch.equal(some[row], batch["net_input"]["tape"][row])
            assert torch.equal(some[row], (all_own if drawn[row] else gold)["net_input"]["tape"][row])
    assert 20 < int(is_own[:, 0].sum()) < 60  # 40 are expected, with a deviation of 4.5
    assert 20 < int((is_own[:, 0] ^ is_own[:, 2]).sum()) < 60, "sentences are drawn together"
