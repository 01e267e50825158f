"""Compact vocabularies: the right rows, no probability for what cannot occur, finite and exact losses."""

from __future__ import annotations

import pytest
import torch
from fairseq import criterions
from torch import nn

from fairseq_stack.models.vocabulary import (
    CompactOutput,
    CompactVocabulary,
    End,
    compact_embedding,
    new_table,
)
from tests.helpers import assert_normwise_close
from tests.models.building import build_language_model, build_translation_model, make_dictionary

WORDS = 5
DICTIONARY = make_dictionary(WORDS, multiple_of=4)
BOS, PAD, EOS, UNK = DICTIONARY.bos(), DICTIONARY.pad(), DICTIONARY.eos(), DICTIONARY.unk()
FIRST = DICTIONARY.nspecial
MADE_UP = FIRST + WORDS


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("end", [End.EOS, End.BOS])
def test_rows(shared: bool, end: End) -> None:
    rows = CompactVocabulary(DICTIONARY, keep_unk=False, shared=shared).rows(end).tolist()
    assert rows[FIRST:MADE_UP] == list(range(WORDS))
    assert rows[EOS] == (WORDS + 1 if shared and end is End.BOS else WORDS)
    assert rows[PAD] == (WORDS + 2 if shared else -1)
    assert {rows[BOS], rows[UNK], *rows[MADE_UP:]} == {-1}


@pytest.mark.parametrize("shared", [True, False])
def test_rows_of_a_model_that_reads_no_ends(shared: bool) -> None:
    vocabulary = CompactVocabulary(DICTIONARY, keep_unk=False, shared=shared, read_ends=False)
    read, predicted = vocabulary.rows(End.UNREAD).tolist(), vocabulary.rows(End.EOS).tolist()
    assert read[FIRST:MADE_UP] == predicted[FIRST:MADE_UP] == list(range(WORDS))
    assert {read[EOS], read[PAD], predicted[PAD]} == {-1}
    assert predicted[EOS] == WORDS
    assert vocabulary.num_output_rows() == WORDS + 1
    assert vocabulary.num_input_rows() == (WORDS + 1 if shared else WORDS)


def test_a_shared_table_without_padding() -> None:
    vocabulary = CompactVocabulary(DICTIONARY, keep_unk=False, shared=True, padding=False)
    assert vocabulary.rows(End.BOS)[[EOS, PAD]].tolist() == [WORDS + 1, -1]
    assert vocabulary.num_input_rows() == WORDS + 2
    embedding = compact_embedding(vocabulary, 4)
    assert embedding.weight.count_nonzero(1).all(), "every row is read"


def test_embeddings_of_the_beginning_and_of_the_end_differ_in_a_shared_table() -> None:
    embedding = compact_embedding(CompactVocabulary(DICTIONARY, keep_unk=False, shared=True), 4)
    tokens = torch.tensor([EOS, FIRST])
    at_end, at_beginning = embedding(tokens), embedding.at_beginning()(tokens)
    assert not torch.equal(at_end[0], at_beginning[0])
    assert torch.equal(at_end[1], at_beginning[1])
    assert embedding.at_beginning().weight is embedding.weight


def test_padding_and_impossible_symbols_are_embedded_as_zero_and_never_learn() -> None:
    embedding = compact_embedding(CompactVocabulary(DICTIONARY, keep_unk=False, shared=True), 4)
    embedded = embedding(torch.tensor([PAD, UNK, MADE_UP]))
    assert embedded.count_nonzero() == 0
    embedded.sum().backward()
    assert embedding.weight.grad is not None
    assert embedding.weight.grad.count_nonzero() == 0


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_output_layer(bias: bool, shared: bool) -> None:
    vocabulary = CompactVocabulary(DICTIONARY, keep_unk=False, shared=shared)
    weight = new_table(vocabulary.num_input_rows() if shared else vocabulary.num_output_rows(), 4)
    output = CompactOutput(vocabulary, weight, bias)
    if output.bias is not None:
        nn.init.normal_(output.bias)
    features = torch.randn(2, 3, 4)
    logits = output(features)
    expected = features @ weight[: WORDS + 1].T + (0 if output.bias is None else output.bias)
    assert_normwise_close(logits[..., [*range(FIRST, MADE_UP), EOS]], expected, 1e-6)
    assert logits[..., [BOS, PAD, UNK, *range(MADE_UP, len(DICTIONARY))]].eq(-torch.inf).all()


def build(task: str) -> nn.Module:
    if task == "translation":
        small = ["--encoder-embed-dim=16", "--decoder-embed-dim=16"]
        return build_translation_model("stack_transformer_nd_small", DICTIONARY, "--compact-vocab", *small)
    shared = ["--share-decoder-input-output-embed"] * task.endswith("shared")
    arch = "stack_lstm_lm_nd_cfl" if task.startswith("recurrent") else "stack_transformer_lm_sup_cfl"
    return build_language_model(arch, DICTIONARY, "--compact-vocab", *shared)


def sample_for(task: str) -> dict:
    target = torch.tensor([[FIRST, FIRST + 2, EOS], [FIRST + 1, EOS, PAD]])
    previous = torch.tensor([[EOS, FIRST, FIRST + 2], [EOS, FIRST + 1, PAD]])
    inputs = {"src_tokens": previous, "src_lengths": torch.tensor([3, 2])}
    if task == "translation":
        inputs = {"src_tokens": target, "src_lengths": torch.tensor([3, 2]), "prev_output_tokens": previous}
    return {"net_input": inputs, "target": target, "ntokens": 5, "nsentences": 2}


TASKS = pytest.mark.parametrize("task", ["translation", "language_modeling", "recurrent", "recurrent-shared"])


class _Task:
    """As much of a task as a criterion looks at."""

    target_dictionary = DICTIONARY


@TASKS
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_stock_criterions_are_finite_and_exact(task: str, smoothing: float) -> None:
    """The losses of fairseq's criterions are those over a vocabulary of only the symbols that can occur."""
    model = build(task).double().eval()
    sample = sample_for(task)
    name = "label_smoothed_cross_entropy" if smoothing else "cross_entropy"
    options = {"sentence_avg": False, "label_smoothing": smoothing} if smoothing else {"sentence_avg": False}
    criterion = criterions.CRITERION_REGISTRY[name](_Task(), **options)
    loss, _, _ = criterion(model, sample)
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())

    possible = [EOS, *range(FIRST, MADE_UP)] + ([UNK] if task == "translation" else [])
    logits, _ = model(**sample["net_input"])
    log_probs = logits[..., possible].log_softmax(-1)
    each = smoothing / (len(possible) - 1)
    expected = torch.zeros((), dtype=torch.float64)
    for row, column in [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]:
        weights = torch.full((len(possible),), each, dtype=torch.float64)
        weights[possible.index(int(sample["target"][row, column]))] = 1 - smoothing
        expected -= weights @ log_probs[row, column]
    assert_normwise_close(loss, expected, 1e-12)


def test_a_symbol_that_cannot_occur_is_an_error() -> None:
    model = build_language_model("stack_transformer_lm_tf_cfl", DICTIONARY, "--compact-vocab")
    with pytest.raises(ValueError, match=r"'<unk>' is in the data.*train with --compact-vocab-unk"):
        model(torch.tensor([[EOS, UNK]]))
    with pytest.raises(ValueError, match="'madeupword0000' is in the data"):
        model(torch.tensor([[EOS, MADE_UP]]))
    with_unk = build_language_model("stack_transformer_lm_tf_cfl", DICTIONARY, "--compact-vocab", "--compact-vocab-unk")
    assert with_unk(torch.tensor([[EOS, UNK]]))[0].shape == (1, 2, len(DICTIONARY))


def test_a_recurrent_model_ignores_the_first_token_and_reads_no_end() -> None:
    model = build_language_model("stack_lstm_lm_sup_cfl", DICTIONARY, "--compact-vocab")
    tokens = torch.tensor([[PAD, EOS, FIRST], [EOS, FIRST, FIRST + 1]])
    assert model(tokens)[0].isfinite().any(-1).all()
    with pytest.raises(
        ValueError, match=r"'</s>' is in the data.*give --sample-break-mode eos, or leave --compact-vocab"
    ):
        model(torch.tensor([[EOS, FIRST, EOS]]))
    with pytest.raises(ValueError, match=r"'<unk>' is in the data.*train with --compact-vocab-unk"):
        model(torch.tensor([[PAD, EOS, UNK]]))


def test_an_encoder_that_shares_its_table_with_nothing_has_no_rows_to_spare() -> None:
    model = build_translation_model(
        "stack_transformer", DICTIONARY, "--compact-vocab", "--share-decoder-input-output-embed"
    )
    symbols = WORDS + 1  # and <unk>
    assert len(model.encoder.embed_tokens.weight) == symbols + 1
    assert len(model.decoder.embed_tokens.weight) == symbols + 3
    assert model.decoder.output_projection.weight is model.decoder.embed_tokens.weight
