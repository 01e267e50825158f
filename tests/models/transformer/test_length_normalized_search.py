"""The paper's beam search with stack models: its incremental state, and the rest of the batch, change nothing."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.helpers import assert_normwise_close
from tests.models.building import (
    DICTIONARY,
    build_opinionated_model,
    each_model,
    search_inputs,
    sources_for,
)

PRESETS = [
    "stack_transformer_sup_small",
    "stack_transformer_nd_small",
    "stack_transformer_lm_sup_cfl",
    "stack_transformer_lm_nd_cfl",
]
Hypotheses = list[dict[str, Any]]


def search(model: nn.Module, sources: list[Tensor], incremental: bool = True) -> list[Hypotheses]:
    sample, prefix = search_inputs(model, sources)
    generator = LengthNormalizedBeamSearchGenerator([model], DICTIONARY, beam_size=4, max_len_b=12, min_len=4)
    generator.model.has_incremental = incremental
    return generator.generate([model], sample, prefix_tokens=prefix)


def build_model_and_sources(preset: str, flags: tuple[str, ...]) -> tuple[nn.Module, list[Tensor]]:
    """A model whose searches end at different times, and what to search for.

    EOS gets more probable until half of the sentences are finished before the maximum length.
    """
    model = build_opinionated_model(preset, (*flags, "--output-bias"))
    sources = sources_for(model) + sources_for(model)
    eos = DICTIONARY.eos() if not flags else -1  # the last row of a compact output layer
    for _ in range(10):
        if sum(sentence[0]["finished"] for sentence in search(model, sources)) >= len(sources) / 2:
            break
        with torch.no_grad():
            model.decoder.output_projection.bias[eos] += 1.0
    return model, sources


def tokens_of(found: list[Hypotheses]) -> list[list[list[int]]]:
    return [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in found]


def assert_same(actual: list[Hypotheses], expected: list[Hypotheses]) -> None:
    assert tokens_of(actual) == tokens_of(expected)
    for ours, theirs in zip(chain(*actual), chain(*expected), strict=True):
        assert_normwise_close(ours["score"], theirs["score"], 1e-9, "score")
        assert_normwise_close(ours["positional_scores"], theirs["positional_scores"], 1e-9, "positional scores")


@each_model(PRESETS)
def test_incremental_state_and_batch_change_nothing(preset: str, flags: tuple[str, ...]) -> None:
    model, sources = build_model_and_sources(preset, flags)
    found = search(model, sources)
    assert len({len(sentence[0]["tokens"]) for sentence in found}) > 1, "all sentences finish at the same time"
    assert_same(found, search(model, sources, incremental=False))
    assert_same(found, [search(model, [source])[0] for source in sources])
