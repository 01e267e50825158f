"""Runs the paper's beam search on models of tests."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.sequence_generator import EnsembleModel
from torch import Tensor

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.search.reference import (
    EOS,
    PAD,
    RandomTable,
    ScriptedModel,
    Tokens,
    make_dictionary,
    make_sample,
)

OPTIONS: dict[str, Any] = {"beam_size": 4, "max_len_a": 1, "max_len_b": 6}
SOURCES: list[Tokens] = [(5, 4, EOS), (EOS,), (4, 4, 5, 5, EOS), (6, EOS)]


def scripted_model(seed: int = 0, num_words: int = 4, **table: Any) -> ScriptedModel:
    dictionary = make_dictionary(num_words)
    return ScriptedModel(dictionary, RandomTable(seed, len(dictionary), **table))


def search(
    models: list[Any], sources: list[Tokens], prefixes: list[Tokens] | None = None, **options: Any
) -> list[list[dict[str, Any]]]:
    left_pad, bos = options.pop("left_pad", True), options.pop("bos", None)
    generator = LengthNormalizedBeamSearchGenerator(models, models[0].decoder.dictionary, **options)
    return generator.generate(
        models,
        make_sample(sources, left_pad=left_pad),
        prefix_tokens=None if prefixes is None else pad_prefixes(prefixes),
        bos_token=bos,
    )


def pad_prefixes(prefixes: list[Tokens]) -> Tensor:
    width = max(len(prefix) for prefix in prefixes)
    return torch.tensor([[*prefix, *[PAD] * (width - len(prefix))] for prefix in prefixes], dtype=torch.long)


def plain(results: list[list[dict[str, Any]]]) -> list[list[Tokens]]:
    return [[tuple(hypothesis["tokens"].tolist()) for hypothesis in result] for result in results]


def assert_needs_reordering(models: list[Any], sources: list[Tokens], monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence at a time, since a batch that shrinks would not fit a state that is not reordered."""
    expected = [plain(search(models, [source], **OPTIONS)) for source in sources]
    monkeypatch.setattr(EnsembleModel, "reorder_incremental_state", lambda self, states, order: None)
    assert [plain(search(models, [source], **OPTIONS)) for source in sources] != expected
