"""The paper's beam search with stack models: its incremental state, and the rest of the batch, change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor, nn

from fairseq_stack.models.self_attention import StackSelfAttention
from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.helpers import assert_normwise_close
from tests.models.building import (
    DICTIONARY,
    VOCABULARIES,
    build_opinionated_model,
    reorder_sizes_only,
    search_inputs,
    sources_for,
)

PRESETS = pytest.mark.parametrize(
    "preset",
    [
        "stack_transformer_sup_small",
        "stack_transformer_nd_small",
        "stack_transformer_lm_sup_cfl",
        "stack_transformer_lm_nd_cfl",
    ],
)
Hypotheses = list[dict[str, Any]]


def search(model: nn.Module, sources: list[Tensor], incremental: bool = True) -> list[Hypotheses]:
    sample, prefix = search_inputs(model, sources)
    generator = LengthNormalizedBeamSearchGenerator([model], DICTIONARY, beam_size=4, max_len_b=12)
    generator.model.has_incremental = incremental
    return generator.generate([model], sample, prefix_tokens=prefix)


def tokens_of(found: list[Hypotheses]) -> list[list[list[int]]]:
    return [[hypothesis["tokens"].tolist() for hypothesis in sentence] for sentence in found]


def assert_same(actual: list[Hypotheses], expected: list[Hypotheses]) -> None:
    assert tokens_of(actual) == tokens_of(expected)
    for ours, theirs in zip(sum(actual, []), sum(expected, []), strict=True):
        assert_normwise_close(ours["score"], theirs["score"], 1e-9, "score")
        assert_normwise_close(ours["positional_scores"], theirs["positional_scores"], 1e-9, "positional scores")


@VOCABULARIES
@PRESETS
def test_incremental_state_and_batch_change_nothing(preset: str, flags: tuple[str, ...]) -> None:
    model = build_opinionated_model(preset, flags)
    sources = sources_for(model)
    found = search(model, sources)
    print([(len(s[0]["tokens"]), s[0]["finished"], len(s), s[0]["score"].dtype) for s in found])
    assert len({len(sentence[0]["tokens"]) for sentence in found}) > 1, "all sentences finish at the same time"
    assert_same(found, search(model, sources, incremental=False))
    assert_same(found, [search(model, [source])[0] for source in sources])


@VOCABULARIES
@PRESETS
def test_search_needs_reordering(preset: str, flags: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above would notice if stacks were not reordered."""
    model = build_opinionated_model(preset, flags)
    sources = sources_for(model)
    expected = search(model, sources)
    monkeypatch.setattr(StackSelfAttention, "reorder_incremental_state", reorder_sizes_only)
    with pytest.raises(AssertionError):
        assert_same(search(model, sources), expected)
