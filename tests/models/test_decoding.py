"""Incremental decoding equals parallel decoding, for every preset, and nothing depends on the rest of the batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.models.presets import PRESETS
from tests.helpers import assert_normwise_close
from tests.models.building import (
    DICTIONARY,
    build_opinionated_model,
    each_model,
    random_words,
    with_eos,
)

TRANSLATION_PRESETS = PRESETS["stack_transformer"]
LANGUAGE_MODEL_PRESETS = [*PRESETS["stack_transformer_lm"], *PRESETS["stack_lstm_lm"]]
NAMES = [*TRANSLATION_PRESETS, *LANGUAGE_MODEL_PRESETS]


OTHERS = (
    ("stack_transformer_lm_nd_cfl", ("--stack-layers=sdpa,nd-2-3-4@3",)),
    ("stack_transformer_lm_nd_cfl", ("--stack-layers=sdpa,sdpa+nd-2-3-4",)),
    ("stack_transformer_lm_nd_cfl", ("--stack-layers=sdpa,nd-2-3-4", "--stack-loops=3", "--loop-injection")),
    ("stack_lstm_lm_ns_2020", ("--stack=ns-2-2@3",)),
    ("stack_lstm_lm_ns_2020", ("--read-log-weights",)),
)
LOOPED = ("stack_transformer_nd_small", ("--stack-loops=2",))
ALL_MODELS = each_model(NAMES, *OTHERS, LOOPED)


def decoder_input(batch_size: int, length: int) -> Tensor:
    return torch.cat([torch.full((batch_size, 1), DICTIONARY.eos()), random_words(batch_size, length)], dim=1)


def encode(model: nn.Module, source: Tensor) -> Any:
    if not hasattr(model, "encoder"):
        return None
    return model.encoder(source, source.ne(DICTIONARY.pad()).sum(1))


@torch.no_grad()
@ALL_MODELS
def test_incremental_logits_equal_parallel_ones(preset: str, flags: tuple[str, ...]) -> None:
    """Also where rows are swapped, repeated and dropped in the middle of decoding."""
    model = build_opinionated_model(preset, flags)
    encoder_out = encode(model, with_eos([random_words(length) for length in (4, 6, 5)], left_pad=True))
    tokens, order = decoder_input(3, 9), torch.tensor([2, 0, 2, 2])
    parallel, _ = model.decoder(tokens, encoder_out=encoder_out)
    state: dict[str, Any] = {}
    for length in range(1, tokens.size(1) + 1):
        if length == 6:
            model.decoder.reorder_incremental_state_scripting(state, order)
            if encoder_out is not None:
                encoder_out = model.encoder.reorder_encoder_out(encoder_out, order)
            tokens = tokens[order]
            tokens[:, 5:] = random_words(4, 5)
            parallel, _ = model.decoder(tokens, encoder_out=encoder_out)
        step, _ = model.decoder(tokens[:, :length], encoder_out=encoder_out, incremental_state=state)
        assert_normwise_close(step, parallel[:, length - 1 : length], 1e-9)


class Doubling(nn.Module):
    """In place of dropout."""

    def forward(self, x: Tensor) -> Tensor:
        return 2 * x


@torch.no_grad()
@each_model(LANGUAGE_MODEL_PRESETS, *OTHERS)
@pytest.mark.parametrize("num_ahead", [4, 6])
def test_what_is_read_ahead_equals_the_parallel_logits(preset: str, num_ahead: int, flags: tuple[str, ...]) -> None:
    """Rows are swapped, repeated and dropped before the step after 4 tokens; dropout, if kept, is applied once."""
    model = build_opinionated_model(preset, flags)
    if hasattr(model.decoder, "dropout_out"):
        model.decoder.dropout_out = Doubling()
    tokens, order = decoder_input(3, 8), torch.tensor([2, 0, 2, 2])
    parallel, _ = model.decoder(tokens)
    state: dict[str, Any] = {}
    model.decoder.read_ahead(tokens[:, :num_ahead], state)
    for length in range(1, tokens.size(1) + 1):
        if length == 5:
            model.decoder.reorder_incremental_state_scripting(state, order)
            tokens, parallel = tokens[order], parallel[order]
        step, _ = model.decoder(tokens[:, :length], incremental_state=state)
        assert_normwise_close(step, parallel[:, length - 1 : length], 1e-9)


def test_skipping_a_step_is_an_error() -> None:
    model = build_opinionated_model("stack_transformer_lm_nd_cfl")
    with pytest.raises(ValueError, match="one token per step: expected 1 previous output tokens, got 3"):
        model.decoder(decoder_input(2, 2), incremental_state={})
