"""``--stack-init``: as fairseq's LSTM, as in the papers' experiments on formal languages, and as in those on text."""

from __future__ import annotations

import math

import pytest
from torch import nn

from tests.models.building import assert_uniform, build_language_model, make_dictionary, xavier_bound

DICTIONARY = make_dictionary(50)
WIDE = "--decoder-hidden-size=40"


@pytest.mark.parametrize("stack", ["sup-30", "strat-30", "nd-2-3-30", "ns-2-5"])
def test_paper(stack: str) -> None:
    """The authors' layers that drive the automaton are no fully connected layers of their own making."""
    decoder = build_language_model(
        "stack_lstm_lm_lstm_cfl", DICTIONARY, WIDE, f"--stack={stack}", "--stack-init-scale=0.03"
    ).decoder
    for name in ("weight", "bias"):
        assert_uniform(decoder.lstm.gates, name, 0.03)
    assert_uniform(decoder.output_projection, "weight", xavier_bound(decoder.output_projection))
    assert decoder.output_projection.bias.count_nonzero() == 0
    for projection in decoder.lstm.stacks[0].projections:
        is_xavier = stack.startswith("s")
        assert_uniform(projection, "weight", xavier_bound(projection) if is_xavier else 0.03)
        assert bool(projection.bias.count_nonzero()) is not is_xavier


def test_paper_with_layers_and_initial_states() -> None:
    flags = ["--decoder-layers=3", "--learned-initial-state", "--controller=rnn", "--stack-init-scale=0.03"]
    lstm = build_language_model("stack_lstm_lm_lstm_cfl", DICTIONARY, WIDE, *flags).decoder.lstm
    for gates in lstm.upper_gates:
        assert_uniform(gates, "weight", 0.03)
        assert_uniform(gates, "bias", 0.03)
    assert_uniform(lstm, "initial", 0.03)


def test_one_turn_is_only_for_automata() -> None:
    decoder = build_language_model(
        "stack_lstm_lm_lstm_cfl", DICTIONARY, WIDE, "--stack=nd-2-3-5+sup-4", "--stack-init=one-turn"
    ).decoder
    automaton, superposition = decoder.lstm.stacks
    assert automaton.actions.bias.unique().tolist() == pytest.approx([-6, -math.log(3), 0])
    assert superposition.actions.bias.unique().numel() > 2
    for module in (decoder.lstm.gates, decoder.output_projection, superposition.actions):
        assert_uniform(module, "weight", 0.1)


@pytest.mark.parametrize(("init", "scale"), [("uniform", 0.05), ("fairseq", 0.1)])
def test_everything_is_uniform(init: str, scale: float) -> None:
    decoder = build_language_model(
        "stack_lstm_lm_vrns_1_5_20_ptb", DICTIONARY, WIDE, "--decoder-embed-dim=40", f"--stack-init={init}"
    ).decoder
    modules: list[nn.Module] = [decoder.lstm.gates, decoder.output_projection, *decoder.lstm.stacks[0].projections]
    for module in modules:
        assert_uniform(module, "weight", scale)
        assert_uniform(module, "bias", scale)
    assert_uniform(decoder.embed_tokens, "weight", scale)
    assert decoder.embed_tokens.weight[DICTIONARY.pad()].count_nonzero() == 0


def test_shared_embeddings_are_no_fully_connected_layer() -> None:
    flags = ["--share-decoder-input-output-embed", "--compact-vocab"]
    decoder = build_language_model("stack_lstm_lm_lstm_cfl", DICTIONARY, WIDE, *flags).decoder
    assert_uniform(decoder.output_projection, "weight", 0.1)
