"""Options mean what they say, and mistakes are refused in one line."""

from __future__ import annotations

import re

import pytest
from fairseq.tasks.language_modeling import LanguageModelingTask
from torch import nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.vocabulary import CompactOutput
from tests.models.building import build_language_model, configure, make_dictionary

DICTIONARY = make_dictionary(5)
SIZE = "--decoder-hidden-size=6"


def test_stacks_with_limited_memory() -> None:
    stack = "--stack=nd-1-2-2@4+ns-1-2@35+ns-1-2"
    lstm = build_language_model("stack_lstm_lm", DICTIONARY, SIZE, stack, "--original-bottom").decoder.lstm
    assert [stack.window for stack in lstm.stacks] == [4, 35, None]


@pytest.mark.parametrize("compact", [[], ["--compact-vocab"]], ids=["stock", "compact"])
def test_shared_embeddings_have_the_size_of_the_hidden_state(compact: list[str]) -> None:
    decoder = build_language_model(
        "stack_lstm_lm", DICTIONARY, SIZE, "--share-decoder-input-output-embed", "--output-bias", *compact
    ).decoder
    assert decoder.embed_tokens.weight is decoder.output_projection.weight
    rows = 5 + 1 if compact else len(DICTIONARY)
    assert decoder.embed_tokens.weight.shape == (rows, 6)
    assert decoder.output_projection.bias is not None
    assert isinstance(decoder.output_projection, CompactOutput if compact else nn.Linear)


def test_layers_have_the_dropout_of_the_output() -> None:
    flags = ["--decoder-layers=3", "--controller=rnn", "--dropout=0.3", "--decoder-dropout-out=0.2"]
    lstm = build_language_model("stack_lstm_lm", DICTIONARY, SIZE, *flags).decoder.lstm
    assert [gates.weight.shape for gates in lstm.upper_gates] == [(6, 12)] * 2
    assert lstm.dropout.p == 0.2


def test_dropout_is_of_embeddings_and_outputs() -> None:
    decoder = build_language_model("stack_lstm_lm", DICTIONARY, "--dropout=0.3").decoder
    assert (decoder.dropout_in.p, decoder.dropout_out.p) == (0.0, 0.3)  # one-hot input has none
    flags = ["--decoder-embed-dim=4", "--dropout=0.3", "--decoder-dropout-in=0.1"]
    decoder = build_language_model("stack_lstm_lm", DICTIONARY, *flags).decoder
    assert (decoder.dropout_in.p, decoder.dropout_out.p) == (0.1, 0.3)


def test_the_longest_sequence_is_that_of_the_task() -> None:
    model = build_language_model("stack_lstm_lm", DICTIONARY, "--tokens-per-sample=77")
    assert model.max_positions() == 77


MISTAKES = {
    "layers": (["--decoder-layers=0"], "--decoder-layers: expected at least 1, got 0"),
    "shared": (
        [SIZE, "--decoder-embed-dim=5", "--share-decoder-input-output-embed"],
        "expected --decoder-embed-dim 6, got 5",
    ),
    "dropout": (["--recurrent-dropout=1"], "--recurrent-dropout: expected a probability below 1, got 1.0"),
    "dropout-in": (["--decoder-dropout-in=0.1"], "--decoder-dropout-in needs embeddings: give --decoder-embed-dim"),
    "bos": (["--add-bos-token"], "--add-bos-token: stack_lstm_lm has no BOS token"),
    "unk": (["--compact-vocab-unk"], "--compact-vocab-unk needs --compact-vocab"),
    "scale": (["--stack-init=paper", "--stack-init-scale=0"], "--stack-init-scale: expected a positive number, got 0"),
    "no-scale": (["--stack-init-scale=0.5"], "--stack-init-scale 0.5 has no effect with --stack-init fairseq"),
    "push": ([SIZE, "--stack=sup-5", "--push-hidden-state"], "--push-hidden-state: the stack holds hidden states"),
    "no-automaton": (["--normalize-transitions"], "expected a stack of the kind nd or ns, got --stack none"),
    "no-symbols": (["--stack=nd-1-2-3", "--no-states-in-reading"], "--no-states-in-reading has no effect"),
    "no-turn": (["--stack=sup-3", "--stack-init=one-turn"], "--stack-init one-turn has no effect: expected a stack nd"),
    "no-reading": (["--reading-in-output"], "--reading-in-output has no effect: expected a stack, got --stack none"),
    "no-cell": (["--controller=rnn", "--recurrent-dropout=0.1"], "--recurrent-dropout has no effect"),
}


@pytest.mark.parametrize(("flags", "message"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes(flags: list[str], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)) as error:
        build_language_model("stack_lstm_lm", DICTIONARY, *flags)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("flags", [("stack_lstm_lm",), ("stack_transformer_lm", "--compact-vocab")], ids=" ".join)
def test_one_dictionary(flags: tuple[str, ...]) -> None:
    of_task, of_model = configure("language_modeling", flags[0], flags[1:])
    task = LanguageModelingTask(of_task, make_dictionary(9), make_dictionary(4))
    with pytest.raises(UserError, match=f"^--output-dictionary-size: expected 13 or no such option for {flags[0]}"):
        task.build_model(of_model)
