"""Plain networks compute what fairseq's models do, with all options that they take; others are refused by name."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.plain import plain_model
from fairseq_stack.models.transformer import encoder_decoder
from fairseq_stack.models.transformer.transformer_options import NOT_IN_PLAIN_NETWORKS
from tests.models.building import (
    DICTIONARY,
    build_language_model,
    build_pushdown_model,
    build_translation_model,
    make_dictionary,
)
from tests.networks.agreement import PAD, assert_same_logits, batch, randomized

Options = dict[str, Any]

SIZES: Options = {"decoder_embed_dim": 8, "decoder_ffn_embed_dim": 12, "decoder_attention_heads": 2}
LANGUAGE_MODEL: Options = {**SIZES, "stack_layers": "sdpa,nd-2-2-3", "decoder_layers": 2}
TRANSLATION: Options = {
    **SIZES, "decoder_output_dim": 8, "encoder_embed_dim": 8, "encoder_ffn_embed_dim": 10,
    "encoder_attention_heads": 4, "encoder_layers": 2, "decoder_layers": 2,
    "stack_encoder_layers": "sup-3,sdpa", "stack_decoder_layers": "sdpa,nd-2-2-3",
}  # fmt: skip

# Within a list the options exclude each other.
VOCABULARIES: list[Options] = [
    {"share_decoder_input_output_embed": True},
    {"compact_vocab": True},
    {"compact_vocab": True, "share_decoder_input_output_embed": True},
]
POSITIONS: list[Options] = [
    {"decoder_learned_pos": True},
    {"stack_positions": "interleaved"},
    {"no_token_positional_embeddings": True},
]
OTHERS: list[list[Options]] = [
    [{"output_bias": True}],
    [{"no_scale_embedding": True}],
    [{"layernorm_embedding": True}],
    [{"activation_fn": name} for name in ("gelu", "gelu_accurate", "gelu_fast", "tanh", "linear")],
    [{"stack_value_activation": "released"}],
    [{"stack_loops": 3}, {"stack_loops": 2, "loop_injection": True}],
]
OF_LANGUAGE_MODELS: list[list[Options]] = [
    [*VOCABULARIES, {"compact_vocab": True, "compact_vocab_unk": True}, {"decoder_input_dim": 6},
     {"decoder_output_dim": 10}, {"compact_vocab": True, "decoder_input_dim": 6, "decoder_output_dim": 10}],
    POSITIONS,
    [{"stack_layers": "sup-4,strat-3", "stack_depth_limit": 3}, {"stack_layers": "ns-2-2,nd-2-2-2@3"},
     {"stack_layers": "deltastack-2-3-2-4,product-1-2-3-2", "deltastack_reading": "current", "product_decay": True},
     {"stack_layers": "sdpa+nd-2-2-3@4,sdpa+sup-3"}, {"stack_layers": None}],
    [{"no_decoder_final_norm": True}],
    *OTHERS,
]  # fmt: skip
OF_TRANSLATION: list[list[Options]] = [
    [*VOCABULARIES, {"share_all_embeddings": True}, {"merge_src_tgt_embed": True},
     {"share_all_embeddings": True, "compact_vocab": True}],
    [*POSITIONS, {"encoder_learned_pos": True}],
    [{"stack_encoder_layers": "strat-3,ns-2-2", "stack_decoder_layers": "sup-4,strat-3"},
     {"stack_encoder_layers": "sdpa+sup-3,sdpa", "stack_decoder_layers": "sdpa+nd-2-2-3,sdpa+strat-2"}],
    [{"encoder_normalize_before": True}],
    [{"decoder_normalize_before": True}, {"decoder_normalize_before": True, "no_decoder_final_norm": True}],
    [{"no_cross_attention": True}],
    *OTHERS,
]  # fmt: skip


def covering(lists: list[list[Options]]) -> list[Options]:
    """Combinations of one of the options of each list, or none, in which each two of different lists meet."""
    choices = [(number, choice) for number, options in enumerate(lists) for choice in range(-1, len(options))]
    missing = {pair for pair in itertools.combinations(choices, 2) if pair[0][0] != pair[1][0]}
    found = []
    while missing:
        chosen = list(min(missing))
        for number in set(range(len(lists))) - {list_of for list_of, _ in chosen}:
            of_list = [choice for choice in choices if choice[0] == number]
            meets = [sum(tuple(sorted((choice, other))) in missing for other in chosen) for choice in of_list]
            chosen.append(of_list[meets.index(max(meets))])
        missing -= set(itertools.combinations(sorted(chosen), 2))
        options = (lists[number][choice] for number, choice in chosen if choice >= 0)
        found.append({name: value for option in options for name, value in option.items()})
    return found


def each_pair(lists: list[list[Options]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("options", covering(lists), ids=lambda options: ",".join(map(str, options.items())))


@torch.no_grad()
@each_pair(OF_LANGUAGE_MODELS)
def test_language_models(options: Options) -> None:
    model = build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL | options)
    plain = plain_model(randomized(model))
    for left in (False, True):
        assert_same_logits(plain, model, batch(6, 0, 3, left=left))


@torch.no_grad()
def test_layers_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a checkpoint, for which alone fairseq's option is meant."""
    monkeypatch.setattr(encoder_decoder, "is_from_checkpoint", lambda: True)
    model = build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL, decoder_layers_to_keep="1")
    assert len(model.decoder.layers) == 1
    assert_same_logits(plain_model(randomized(model)), model, batch(6, 0, 3, left=False))


@torch.no_grad()
@each_pair(OF_TRANSLATION)
def test_translation_models(options: Options) -> None:
    model = build_translation_model("stack_transformer", DICTIONARY, **TRANSLATION | options)
    plain = plain_model(randomized(model))
    for left in (False, True):
        assert_same_logits(plain, model, batch(2, 5, 4, left=left, end=True), batch(6, 0, 3, left=left))


@torch.no_grad()
@pytest.mark.parametrize("normalize_before", [False, True])
@pytest.mark.parametrize("compact", [False, True])
def test_translation_between_vocabularies_and_widths(compact: bool, normalize_before: bool) -> None:
    options = {"encoder_embed_dim": 12, "encoder_normalize_before": normalize_before, "compact_vocab": compact}
    dictionaries = {"dictionary": make_dictionary(30), "target_dictionary": DICTIONARY}
    model = build_translation_model("stack_transformer", **dictionaries, **TRANSLATION | options)
    plain = plain_model(randomized(model))
    assert_same_logits(plain, model, batch(2, 5, 4, left=True, end=True), batch(6, 0, 3, left=False))


LSTMS: list[list[Options]] = [
    [{"stack": "sup-3+nd-2-2-3"}, {"stack": "strat-3+sup-2", "stack_depth_limit": 2},
     {"stack": "sup-10", "push_hidden_state": True}, {"stack": "nd-2-2-3@3", "bottom_vector": "one"},
     {"stack": "nd-1-2-3", "normalize_transitions": True}, {"stack": "ns-2-2", "no_states_in_reading": True},
     {"stack": "ns-2-2", "read_log_weights": True}, {"stack": "ns-2-2", "original_bottom": True},
     {"stack": "sup-3+nd-2-2-3", "reading_in_output": True}],
    [{"decoder_layers": 3}, {"controller": "rnn", "decoder_layers": 2, "learned_initial_state": True}],
    [{"decoder_embed_dim": 6}, {"share_decoder_input_output_embed": True}],
    [{"compact_vocab": True}, {"compact_vocab": True, "compact_vocab_unk": True}],
    [{"output_bias": True}],
]  # fmt: skip


@torch.no_grad()
@each_pair(LSTMS)
def test_lstms(options: Options) -> None:
    model = build_language_model("stack_lstm_lm", DICTIONARY, **{"decoder_hidden_size": 10} | options)
    plain = plain_model(randomized(model, 3.0))
    right = batch(6, 0, 3, left=False)
    within = torch.cat([right[:, :2], torch.full((3, 1), PAD), right[:, 2:]], 1)
    for tokens in (right, within, batch(6, 0, 3, left=True)):
        assert_same_logits(plain, model, tokens)


@torch.no_grad()
@pytest.mark.parametrize("compact", [False, True])
def test_lstm_of_a_stream(compact: bool) -> None:
    """It reads the end of a sentence in place of the first token."""
    begins = {"stack_init": "paper", "stack_init_scale": 0.3}
    model = build_language_model("stack_lstm_lm", DICTIONARY, stack="nd-2-2-3", compact_vocab=compact, **begins)
    randomized(model, 3.0).decoder.first = first = DICTIONARY.index("w2")
    plain = plain_model(model)
    assert plain.options.first == first
    assert begins.items() <= vars(plain.options).items()
    for left in (False, True):
        assert_same_logits(plain, model, batch(6, 0, 3, left=left))


@pytest.mark.parametrize("options", [{}, {"share_decoder_input_output_embed": True}])
def test_gradients(options: Options) -> None:
    """Of training, in which parameters are the same and dropout is 0."""
    model = build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL | {"dropout": 0.0} | options)
    plain = plain_model(randomized(model).train())
    assert plain.training
    tokens = batch(6, 6, left=False)
    for logits in (model(tokens)[0], plain(tokens)):
        logits.log_softmax(-1)[..., 5].sum().backward()
    expected = dict(model.named_parameters())
    for name, parameter in plain.named_parameters():
        actual = parameter.grad
        assert actual is not None
        assert torch.allclose(actual, expected[name].grad, rtol=1e-10, atol=1e-12), name


def test_dropout_is_carried_over() -> None:
    options = {"dropout": 0.25, "attention_dropout": 0.5, "relu_dropout": 0.125}
    plain = plain_model(build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL | options))
    chosen = plain.options.dropout, plain.options.attention_dropout, plain.options.activation_dropout
    assert chosen == (0.25, 0.5, 0.125)
    layer = plain.get_submodule("decoder.layers.0")
    assert (layer.dropout.p, layer.self_attn.dropout, layer.activation_dropout.p) == chosen


@pytest.mark.parametrize("name", NOT_IN_PLAIN_NETWORKS)
def test_refused_options(name: str) -> None:
    model = build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL)
    setattr(model.decoder.cfg, name, 1)
    with pytest.raises(UserError, match=f"--{name.replace('_', '-')}: expected a model without it"):
        plain_model(model)


def test_refused_models() -> None:
    model = build_pushdown_model("pushdown_transformer_lm", DICTIONARY)
    with pytest.raises(UserError, match=r"expected a stack_transformer.*, got PushdownLanguageModel"):
        plain_model(model)
    ensemble = nn.Module()
    ensemble.models = nn.ModuleList([model, model])
    with pytest.raises(UserError, match="expected one model, got an ensemble of 2"):
        plain_model(ensemble)
