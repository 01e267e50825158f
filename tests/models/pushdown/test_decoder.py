"""The decoder reads tapes, or decides itself; its vocabulary can be compact; presets have their sizes."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
import torch

from fairseq_stack.errors import UserError
from fairseq_stack.models.presets import PRESETS
from fairseq_stack.models.vocabulary import CompactOutput
from fairseq_stack.modules import (
    BilinearAttachmentHead,
    PushdownAttention,
    SuperpositionStackAttention,
)
from fairseq_stack.ops import StackTapeState, stack_tape
from tests.helpers import assert_normwise_close
from tests.models.building import build_pushdown_model, count_parameters, make_dictionary

DICTIONARY = make_dictionary(9)
SMALL = ["--decoder-embed-dim=12", "--decoder-ffn-embed-dim=16", "--decoder-attention-heads=3"]


def small_model(*flags: str) -> Any:
    model = build_pushdown_model("pushdown_transformer_lm", DICTIONARY, *SMALL, *flags).double().eval()
    for parameter in model.parameters():
        parameter.data.add_(torch.randn_like(parameter), alpha=0.5)
    return model


def sentences() -> torch.Tensor:
    """Two sentences after </s>, the second one with padding."""
    tokens = torch.randint(4, 4 + 9, (2, 7))
    tokens[:, 0], tokens[1, 5:] = DICTIONARY.eos(), DICTIONARY.pad()
    return tokens


@pytest.mark.parametrize("compact", [(), ("--compact-vocab", "--output-bias")], ids=["stock", "compact"])
@pytest.mark.parametrize("name", ["equations", "figures", "released"])
def test_own_decisions(name: str, compact: tuple[str, ...]) -> None:
    """As reading the tapes that they write; one token at a time, and reordered."""
    layers = "--stack-layers=pushdown,sup-4,sdpa,pushdown", "--stack-depth-limit=2"
    model = small_model(f"--pushdown-parametrization={name}", *layers, *compact)
    tokens, network = sentences(), model.decoder.network
    logits, _ = model(tokens)
    state, decided = network.initial_state(2), [torch.zeros(2, dtype=torch.long)]
    for words in tokens[:, 1:].unbind(1):
        decided.append(network.next_attachments(state, words).argmax(1))
        state = network.step(state, words, decided[-1])
    tape = stack_tape(torch.stack(decided, 1))
    with_tape, extra = model(tokens, tape=tape, next_words=tokens.roll(-1, 1))
    can_occur = with_tape.isfinite()
    assert torch.equal(can_occur, logits.isfinite())
    assert_normwise_close(logits[can_occur], with_tape[can_occur], 1e-11)
    assert extra["attachment_scores"].shape == (2, 7, 8)
    features, _ = model.extract_features(tokens, tape=tape)
    assert torch.equal(model.decoder.output_layer(features), with_tape)
    incremental: dict[str, dict[str, object]] = {}
    rows = torch.arange(2)
    for length in range(1, 6):
        if length == 3:
            rows = torch.tensor([1, 0, 1])
            model.decoder.reorder_incremental_state(incremental, rows)
        step, _ = model.decoder(tokens[rows, :length], incremental_state=incremental)
        assert_normwise_close(
            step[:, 0][can_occur[rows, length - 1]], logits[rows, length - 1][can_occur[rows, length - 1]], 1e-11
        )


@pytest.mark.parametrize(("retain", "modules"), [(True, None), (True, ["Other"]), (False, None)])
def test_retained_dropout(retain: bool, modules: list[str] | None) -> None:
    model = small_model("--dropout=0.5")
    generation = Namespace(retain_dropout=retain, retain_dropout_modules=modules)
    model.prepare_for_inference_(Namespace(generation=generation))
    tokens = sentences()
    assert torch.equal(model(tokens)[0], model(tokens)[0]) != (retain and modules is None)


def test_compact_vocabulary() -> None:
    model = small_model("--compact-vocab")
    output = model.decoder.network.output
    assert isinstance(output, CompactOutput) and output.weight is model.decoder.embed_tokens.weight
    (log_words,) = model.decoder.network.next_words(model.decoder.network.initial_state(1))
    assert log_words.isfinite().nonzero().flatten().tolist() == [DICTIONARY.eos(), *range(4, 4 + 9)]


def test_layers_and_heads() -> None:
    network = small_model("--stack-layers=pushdown,sup-4,sdpa", "--pushdown-depths=2").decoder.network
    first, second, third = (layer.attention for layer in network.layers)
    assert isinstance(first, PushdownAttention) and first.depths.num_embeddings == 2
    assert isinstance(second, SuperpositionStackAttention) and second.depth_limit is None
    assert isinstance(third, PushdownAttention) and third.depths is None
    assert network.head.depths.num_embeddings == 2
    without = small_model("--no-depths-in-head").decoder.network
    assert without.head.depths is None and without.reads_tape
    assert small_model("--stack-layers=sdpa").decoder.network.reads_tape
    for flag in ("--no-depths-in-head", "--pushdown-parametrization=equations"):
        assert not small_model("--stack-layers=sup-4,sdpa", flag).decoder.network.reads_tape
    assert isinstance(small_model("--pushdown-parametrization=equations").decoder.network.head, BilinearAttachmentHead)
    with pytest.raises(UserError, match=r"^--stack-depth-limit has no effect: expected a layer of the kind sup, got "):
        small_model("--stack-depth-limit=2")


def test_only_zero_and_one() -> None:
    """With a table of two depths, the model sees the tape of 0 and 1."""
    model, tokens = small_model("--pushdown-depths=2"), sentences()
    state, attachments = StackTapeState.initial(batch_size=2), [torch.zeros(2, dtype=torch.long)]
    for t in range(1, 7):
        attachments.append(torch.full((2,), t if t % 2 else t - 1))
        state = state.step(attachments[-1])
    attachments[-1] = torch.full((2,), 2)
    tape = stack_tape(torch.stack(attachments, 1))
    assert tape.max() == 3
    assert torch.equal(model(tokens, tape=tape)[0], model(tokens, tape=tape.clamp(max=1))[0])


@pytest.mark.parametrize(
    ("preset", "parameters"),
    [("pushdown_transformer_lm_dyck", 1_875_018), ("pushdown_transformer_lm_dyck_base", 1_717_546)],
)
def test_sizes_of_presets(preset: str, parameters: int) -> None:
    """The authors have 1.91 million for Dyck(20, 10)."""
    assert preset in PRESETS["pushdown_transformer_lm"]
    assert count_parameters(build_pushdown_model(preset, make_dictionary(41), "--compact-vocab")) == parameters
