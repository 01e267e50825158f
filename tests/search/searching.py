"""Runs the paper's beam search on models of tests."""

from __future__ import annotations

from typing import Any

import torch
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
