"""``--stack-init``: Appendix D.2 of DuSell & Chiang (2024), and stacks that come first."""

from __future__ import annotations

import math

import pytest
import torch

from tests.helpers import assert_normwise_close
from tests.models.building import (
    assert_uniform,
    build_language_model,
    build_translation_model,
    make_dictionary,
    xavier_bound,
)

DICTIONARY = make_dictionary(50)
SMALL = ("--encoder-embed-dim=16", "--decoder-embed-dim=16", "--encoder-ffn-embed-dim=64", "--decoder-ffn-embed-dim=64")


@pytest.mark.parametrize("kind", ["sup", "nd"])
def test_translation(kind: str) -> None:
    model = build_translation_model(f"stack_transformer_{kind}_small", DICTIONARY, *SMALL)
    scale = 0.01
    for layers in (model.encoder.layers, model.decoder.layers):
        sdpa, stack = layers[1], layers[2]
        for name in ("self_attn.q_proj.weight", "self_attn.out_proj.bias", "fc1.weight", "fc2.bias"):
            assert_uniform(sdpa, name, scale)
        for linear in (stack.self_attn.attention.actions, stack.self_attn.attention.output, stack.fc2):
            assert_uniform(linear, "weight", xavier_bound(linear))
        assert_uniform(stack.fc1, "weight", xavier_bound(stack.fc1, math.sqrt(2)))
        assert stack.fc1.bias.count_nonzero() == stack.fc2.bias.count_nonzero() == 0
        assert stack.self_attn_layer_norm.weight.eq(1).all()
        assert sdpa.final_layer_norm.bias.eq(0).all()
    assert_uniform(model.decoder.layers[2].encoder_attn, "k_proj.weight", scale)
    assert_uniform(model.encoder.embed_tokens, "weight", scale)
    assert model.decoder.output_projection.weight is model.encoder.embed_tokens.weight
    assert model.encoder.embed_tokens.weight[DICTIONARY.pad()].count_nonzero() == 0


@pytest.mark.parametrize("flags", [(), ("--compact-vocab",)], ids=["stock-vocab", "compact-vocab"])
def test_language_model_with_an_output_layer_of_its_own(flags: tuple[str, ...]) -> None:
    model = build_language_model("stack_transformer_lm_nd_cfl", DICTIONARY, *flags)
    output = model.decoder.output_projection
    assert_uniform(output, "weight", xavier_bound(output))
    assert output.bias.count_nonzero() == 0
    assert_uniform(model.decoder.embed_tokens, "weight", 0.1)
    assert_uniform(model.decoder.layers[2].self_attn.attention, "bottom_logits", 0.1)


@pytest.mark.parametrize("init", ["fairseq", "paper", "one-turn"])
def test_gates_begin_closed(init: str) -> None:
    flags = ("--stack-layers=2xsdpa,sdpa+nd-2-2-3,2xsdpa", f"--stack-init={init}")
    beside = build_language_model("stack_transformer_lm_nd_cfl", DICTIONARY, *flags).decoder.layers[2].self_attn
    assert beside.gate.weight.count_nonzero() == 0
    assert beside.stack.attention.output.weight.count_nonzero() > 0


def test_one_turn() -> None:
    """Layers without a stack are the identity, and the automaton pushes a symbol whatever is on top."""
    model = build_translation_model("stack_transformer_nd_small", DICTIONARY, *SMALL, "--stack-init=one-turn")
    model.eval()
    inputs = torch.randn(4, 3, 16)
    for layers in (model.encoder.layers, model.decoder.layers):
        for number, layer in enumerate(layers):
            without_source = layer(inputs, None)
            outputs = without_source[0] if isinstance(without_source, tuple) else without_source
            assert torch.equal(outputs, inputs) == (number != 2)
    stack = model.decoder.layers[2].self_attn.attention
    push, _, pop = stack.transitions(stack.actions(torch.randn(16)) - stack.actions.bias)
    assert_normwise_close(push, push[:1, :1, :1].expand_as(push), 1e-5)
    assert pop.unique().numel() == pop.numel()


def test_without_automata_one_turn_only_closes_layers() -> None:
    model = build_language_model("stack_transformer_lm_sup_cfl", DICTIONARY, "--stack-init=one-turn")
    assert model.decoder.layers[2].self_attn.attention.actions.bias is None
    assert not model.decoder.layers[1].fc2.weight.count_nonzero()


def test_fairseq_initialization_is_an_option() -> None:
    model = build_language_model("stack_transformer_lm_tf_ptb", DICTIONARY, "--stack-init=fairseq")
    assert model.decoder.embed_tokens.weight.abs().max() > 0.1
