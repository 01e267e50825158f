"""The paper's beam search on a small transformer of fairseq, whose attention keeps state in its own way."""

from __future__ import annotations

from argparse import Namespace
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.search.reference import (
    EOS,
    FIRST_WORD,
    Tokens,
    make_dictionary,
    make_sample,
)
from tests.search.searching import OPTIONS, assert_needs_reordering, plain, search


def build_transformer(seed: int, dictionary: Dictionary) -> TransformerModel:
    """fairseq's transformer, tiny, with weights that make peaked distributions and a good chance of EOS."""
    torch.manual_seed(seed)
    args = Namespace(
        encoder_embed_dim=16,
        encoder_ffn_embed_dim=16,
        encoder_layers=1,
        encoder_attention_heads=2,
        decoder_layers=2,
        decoder_attention_heads=2,
        max_source_positions=30,
        max_target_positions=30,
        dropout=0.3,
        share_all_embeddings=True,
    )
    base_architecture(args)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    model = TransformerModel.build_model(args, task).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
        model.decoder.layers[-1].final_layer_norm.bias += model.decoder.embed_tokens.weight[EOS]
    return model


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    return make_dictionary(10)


@pytest.fixture(scope="module")
def models(dictionary: Dictionary) -> list[TransformerModel]:
    return [build_transformer(seed, dictionary) for seed in (4, 26)]


@pytest.fixture(scope="module")
def sources() -> list[Tokens]:
    generator = torch.Generator().manual_seed(0)
    lengths = [3, 9, 1, 6, 4, 6]
    return [(*torch.randint(FIRST_WORD, 14, (n,), generator=generator).tolist(), EOS) for n in lengths]


class TestTransformer:
    """On fairseq's own transformer, whose attention keeps state in its own way."""

    def check_same(self, actual: list[Any], expected: list[Any]) -> None:
        assert plain(actual) == plain(expected)
        pairs = zip(chain.from_iterable(actual), chain.from_iterable(expected), strict=True)
        for one, other in pairs:
            torch.testing.assert_close(one["score"], other["score"], rtol=0, atol=1e-5)

    @pytest.mark.parametrize("num_models", [1, 2])
    def test_equals_search_without_state(
        self, models: list[TransformerModel], sources: list[Tokens], dictionary: Dictionary, num_models: int
    ) -> None:
        generator = LengthNormalizedBeamSearchGenerator(models[:num_models], dictionary, **OPTIONS)
        actual = generator.generate(models, make_sample(sources))
        generator.model.has_incremental = False
        self.check_same(actual, generator.generate(models, make_sample(sources)))
        lengths = {len(result[0]["tokens"]) for result in actual}
        assert len(lengths) > 2, "searches that end at different steps shrink the batch"

    def test_needs_reordering(
        self, models: list[TransformerModel], sources: list[Tokens], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert_needs_reordering(models[:1], sources, monkeypatch)

    @pytest.mark.parametrize("left_pad", [True, False], ids=["left", "right"])
    def test_does_not_depend_on_the_batch(
        self, models: list[TransformerModel], sources: list[Tokens], left_pad: bool
    ) -> None:
        together = search(models[:1], sources, left_pad=left_pad, **OPTIONS)
        alone = [search(models[:1], [source], **OPTIONS)[0] for source in sources]
        self.check_same(together, alone)
        backwards = search(models[:1], sources[::-1], left_pad=left_pad, **OPTIONS)
        self.check_same(backwards[::-1], alone)

    def test_scores_are_those_of_the_scorer(
        self, models: list[TransformerModel], sources: list[Tokens], dictionary: Dictionary
    ) -> None:
        results = search(models[:1], sources, **OPTIONS)
        finished = [(s, r[0]) for s, r in zip(sources, results, strict=True) if r[0]["finished"]]
        assert finished
        for source, hypothesis in finished:
            sample = make_sample([source])
            sample["target"] = hypothesis["tokens"][None]
            sample["net_input"]["prev_output_tokens"] = hypothesis["tokens"].roll(1)[None]
            scored = SequenceScorer(dictionary).generate(models[:1], sample)[0][0]
            torch.testing.assert_close(scored["positional_scores"], hypothesis["positional_scores"], rtol=0, atol=1e-5)
            torch.testing.assert_close(scored["score"], hypothesis["score"], rtol=0, atol=1e-5)

    def test_beam_of_one_equals_fairseq(
        self, models: list[TransformerModel], sources: list[Tokens], dictionary: Dictionary
    ) -> None:
        finished = [
            (source, result[0])
            for source, result in zip(sources, search(models[:1], sources, beam_size=1, max_len_b=12), strict=True)
            if result[0]["finished"]
        ]
        assert finished
        generator = SequenceGenerator(models[:1], dictionary, beam_size=1, max_len_b=12)
        of_fairseq = generator.generate(models[:1], make_sample([source for source, _ in finished]))
        self.check_same([[hypothesis] for _, hypothesis in finished], of_fairseq)
