"""The models stack_tagger_transformer and stack_tagger_lstm."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from tests.helpers import assert_normwise_close
from tests.models.building import build_language_model, build_transduction_model, make_dictionary
from tests.networks.agreement import randomized

DICTIONARY = make_dictionary(5, multiple_of=8)
FIRST = DICTIONARY.nspecial
SIZES = ["--decoder-embed-dim=8", "--decoder-ffn-embed-dim=12", "--decoder-attention-heads=2"]
LISTS = ["sdpa", "sup-5", "delta-2-3-4"]
CAUSAL = [
    *(("stack_tagger_transformer", [*SIZES, "--causal", f"--stack-layers=sdpa,{layer}"]) for layer in LISTS),
    ("stack_tagger_transformer", [*SIZES, "--causal", "--stack-layers=sdpa,nd-2-2-3", "--stack-loops=2"]),
    ("stack_tagger_lstm", ["--stack=none"]),
    ("stack_tagger_lstm", ["--stack=sup-3", "--decoder-layers=2", "--controller=rnn", "--reading-in-output"]),
    ("stack_tagger_lstm", ["--stack=sup-3+nd-2-2-2", "--decoder-embed-dim=6"]),
]
WHOLE = ("stack_tagger_transformer", [*SIZES, "--stack-layers=sdpa,nd-2-2-3", "--stack-positions=interleaved"])


def build(arch: str, flags: list[str]) -> Any:
    return randomized(build_transduction_model(arch, DICTIONARY, *flags))


def words(*shape: int) -> Tensor:
    return torch.randint(FIRST, FIRST + 5, shape)


@torch.no_grad()
@pytest.mark.parametrize(("arch", "flags"), CAUSAL, ids=lambda value: value if isinstance(value, str) else value[-1])
def test_outputs_depend_on_the_input_up_to_them(arch: str, flags: list[str]) -> None:
    model, tokens = build(arch, flags), words(2, 7)
    before = model(tokens)["encoder_out"]
    assert before.shape == (2, 7, 5), "a logit for each word of the dictionary, at each position"
    for t in range(7):
        changed = tokens.clone()
        changed[:, t] = FIRST + (tokens[:, t] - FIRST + 1) % 5
        after = model(changed)["encoder_out"]
        assert torch.equal(after[:, :t], before[:, :t])
        assert not torch.equal(after[:, t], before[:, t])


@torch.no_grad()
@pytest.mark.parametrize(
    ("arch", "flags"), [*CAUSAL, WHOLE], ids=lambda value: value if isinstance(value, str) else value[-1]
)
def test_padding_changes_nothing(arch: str, flags: list[str]) -> None:
    """Whatever stands there: the task pads with blanks, which are words."""
    model, tokens, lengths = build(arch, flags), words(4, 9), torch.tensor([9, 1, 5, 4])
    batch = model(tokens, lengths)["encoder_out"]
    for row, length in enumerate(lengths.tolist()):
        alone = model(tokens[row : row + 1, :length], lengths[row : row + 1])["encoder_out"]
        assert_normwise_close(batch[row, :length], alone[0], 1e-12)


@torch.no_grad()
def test_without_causal_outputs_depend_on_the_whole_input() -> None:
    model, tokens = build(*WHOLE), words(1, 5)
    changed = tokens.index_fill(1, torch.tensor([4]), FIRST + (int(tokens[0, 4]) - FIRST + 1) % 5)
    assert (model(tokens)["encoder_out"] - model(changed)["encoder_out"]).abs().amin(2).gt(1e-6).all()


@pytest.mark.parametrize(("arch", "flags"), [WHOLE, CAUSAL[-1]])
def test_special_symbols_are_vectors_of_zeros(arch: str, flags: list[str]) -> None:
    model = build_transduction_model(arch, DICTIONARY, *flags)
    assert not model.encoder.network.embed_tokens.weight[0].any()
    model, special = randomized(model), torch.tensor([[0, FIRST, 2], [3, FIRST, FIRST + 6]])
    first, second = model(special)["encoder_out"]
    assert_normwise_close(first, second, 1e-12)


@pytest.mark.parametrize(
    ("arch", "flags", "message"),
    [
        ("stack_tagger_transformer", "--stack-layers=sup", "^--stack-layers: "),
        ("stack_tagger_transformer", "--stack-layers=pushdown", "pushdown is .* cannot have"),
        ("stack_tagger_transformer", "--decoder-embed-dim=6", "^--decoder-attention-heads: expected a divisor of 6"),
        ("stack_tagger_transformer", "--loop-injection", "^--loop-injection has no effect"),
        ("stack_tagger_transformer", "--dropout=1", "^--dropout: expected a probability below 1"),
        ("stack_tagger_transformer", "--stack-bias", "^--stack-bias has no effect"),
        ("stack_tagger_lstm", "--stack=delta-1-2-2", "^--stack: "),
    ],
)
def test_options_that_cannot_be(arch: str, flags: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        build_transduction_model(arch, DICTIONARY, flags)


def test_other_tasks_are_refused() -> None:
    with pytest.raises(UserError, match="stack_tagger_lstm: expected --task stack_transduction"):
        build_language_model("stack_tagger_lstm", DICTIONARY)
