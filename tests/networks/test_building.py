"""New networks begin as fairseq's models do, and wrong options are refused."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.plain import plain_model
from fairseq_stack.networks import LSTMOptions, StackLSTMLM, StackTransformer, StackTransformerLM, TransformerOptions
from tests.helpers import assert_normwise_close
from tests.models.building import DICTIONARY, build_language_model, build_translation_model
from tests.networks.agreement import batch
from tests.networks.test_plain_models import LANGUAGE_MODEL, TRANSLATION

VOCAB_SIZE = len(DICTIONARY)
NOT_TEXT: Any = ["sup-3"]


@pytest.mark.parametrize("changed", [
    {}, {"decoder_learned_pos": True, "layernorm_embedding": True, "output_bias": True},
    {"decoder_input_dim": 6, "decoder_output_dim": 10}, {"stack_init": "paper"},
    {"stack_init": "paper", "share_decoder_input_output_embed": True, "stack_init_scale": 0.3},
    {"stack_init": "one-turn"},
])  # fmt: skip
def test_language_models_begin_as_in_fairseq(changed: dict[str, Any]) -> None:
    """From the same random numbers, parameter by parameter."""
    torch.manual_seed(3)
    model = build_language_model("stack_transformer_lm", DICTIONARY, **LANGUAGE_MODEL | changed)
    options: Any = plain_model(model).options
    torch.manual_seed(3)
    assert_same_parameters(StackTransformerLM(options, VOCAB_SIZE), model)


@pytest.mark.parametrize(
    "changed",
    [{}, {"encoder_embed_dim": 12}, {"share_all_embeddings": True, "stack_init": "paper"}, {"stack_init": "one-turn"}],
)
def test_translation_models_begin_as_in_fairseq(changed: dict[str, Any]) -> None:
    torch.manual_seed(3)
    model = build_translation_model("stack_transformer", DICTIONARY, **TRANSLATION | changed)
    options: Any = plain_model(model).options
    torch.manual_seed(3)
    assert_same_parameters(StackTransformer(options, VOCAB_SIZE), model)


NETWORKS = {
    "lm": lambda **changed: StackTransformerLM(TransformerOptions(stack_layers="sdpa,nd-2-2-3", **changed), VOCAB_SIZE),
    "translation": lambda **changed: StackTransformer(
        TransformerOptions(stack_layers="sdpa,sup-3", stack_encoder_layers="strat-3", **changed), VOCAB_SIZE
    ),
    "lstm": lambda **changed: StackLSTMLM(LSTMOptions(stack="sup-3+nd-2-2-3", **changed), VOCAB_SIZE),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_all_buffers_are_saved(name: str) -> None:
    """Libraries that build models without memory would leave others undefined."""
    network = NETWORKS[name](compact_vocab=True)
    possible = network.decoder.output_projection.possible
    assert possible.all()
    assert dict(network.named_buffers()).keys() == {"decoder.output_projection.possible"} < network.state_dict().keys()


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_can_be_copied_pickled_and_converted(name: str) -> None:
    network = NETWORKS[name]().eval()
    tokens = [batch(3, 5, left=True)] * (2 if name == "translation" else 1)
    logits = network(*tokens)
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert torch.equal(copied(*tokens), logits)
    is_symbol = tokens[0].ne(1)
    assert_normwise_close(network.double()(*tokens)[is_symbol], logits[is_symbol], 1e-4)
    assert_normwise_close(network.bfloat16()(*tokens)[is_symbol], logits[is_symbol], 0.1)


@pytest.mark.parametrize("name", NETWORKS)
def test_tokens_without_a_batch_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^tokens: expected shape \(B, n\), got \(2,\)$"):
        NETWORKS[name]()(*[torch.tensor([2, 3])] * (2 if name == "translation" else 1))


@torch.no_grad()
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_one_graph(name: str) -> None:
    network = NETWORKS[name]().eval()
    tokens = [batch(3, 5, left=True)] * (2 if name == "translation" else 1)
    compiled = torch.compile(network, fullgraph=True, backend="aot_eager")
    is_symbol = tokens[0].ne(1)
    assert_normwise_close(compiled(*tokens)[is_symbol], network(*tokens)[is_symbol], 1e-5)


@pytest.mark.parametrize(("build", "message"), [
    (lambda: TransformerOptions(stack_positions="learned"), "stack_positions: expected one of fairseq, interleaved"),
    (lambda: TransformerOptions(stack_init="uniform"),
     "stack_init: expected one of fairseq, paper, one-turn, got 'uniform'"),
    (lambda: LSTMOptions(stack_init="fairseq"), "stack_init: expected one of uniform, paper, one-turn, got 'fairseq'"),
    (lambda: LSTMOptions(controller="gru"), "controller: expected one of lstm, rnn, got 'gru'"),
    (lambda: LSTMOptions(share_decoder_input_output_embed=True), "decoder_embed_dim: expected 100"),
    (lambda: LSTMOptions(share_decoder_input_output_embed=True, stack="sup-3", reading_in_output=True),
     "decoder_embed_dim: expected 103, the size of what the output layer reads"),
    (lambda: NETWORKS["lm"](decoder_attention_heads=7), "attention heads: expected a divisor of the size 512, got 7"),
    (lambda: NETWORKS["lm"](activation_fn="swish"), "activation_fn: expected one of relu, gelu.*, got 'swish'"),
    (lambda: NETWORKS["lm"](decoder_output_dim=8, share_decoder_input_output_embed=True), "decoder_output_dim: "),
    (lambda: NETWORKS["translation"](encoder_embed_dim=8, share_all_embeddings=True), "share_all_embeddings: "),
    (lambda: StackTransformerLM(TransformerOptions(stack_layers="pushdown"), 9), "stack_layers: pushdown is "),
    (lambda: StackTransformerLM(TransformerOptions(stack_layers="sdpa,lru-3"), 9), "layer list 'sdpa,lru-3'"),
    (lambda: StackLSTMLM(LSTMOptions(stack="sdpa"), 9), "stacks 'sdpa'"),
    (lambda: StackLSTMLM(LSTMOptions(stack=NOT_TEXT), 9), "stacks: expected text, for example .*, got .'sup-3'.$"),
])  # fmt: skip
def test_wrong_options(build: Callable[[], object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        build()


def assert_same_parameters(plain: nn.Module, model: Any) -> None:
    expected = dict(model.named_parameters())
    assert [name for name, _ in plain.named_parameters()] == list(expected)
    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, expected[name]), name
