"""The paper's beam search against slow searches, on scripted models."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.search import LengthNormalizedBeamSearchGenerator
from tests.models.building import make_dictionary
from tests.search.reference import (
    BOS,
    EOS,
    FIRST_WORD,
    PAD,
    UNK,
    RandomTable,
    ScriptedModel,
    ScriptedTable,
    Tokens,
    assert_same_hypotheses,
    make_sample,
    next_log_probs,
    reference_search,
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


class TestAgainstReference:
    @given(data=st.data())
    @settings(max_examples=100)
    def test_any_options(self, data: st.DataObject) -> None:
        """Batches of sentences of all lengths, any beam, prefixes, ensembles, impossible symbols."""
        seed = data.draw(st.integers(0, 10**6), label="seed")
        num_words = data.draw(st.integers(1, 4), label="num_words")
        impossible = data.draw(st.frozensets(st.sampled_from([BOS, PAD, UNK, 5, 6])), label="impossible")
        models = [
            scripted_model(
                seed + member,
                num_words,
                impossible=impossible,
                holes=data.draw(st.booleans(), label="holes"),
                eos_bonus=data.draw(st.sampled_from([-2.0, 0.0, 1.0]), label="eos_bonus"),
            )
            for member in range(data.draw(st.integers(1, 2), label="num_models"))
        ]
        sources = data.draw(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=4), label="sources")
        max_len_a = data.draw(st.sampled_from([0, 0.5, 1]), label="max_len_a")
        max_len_b = data.draw(st.integers(1, 5), label="max_len_b")
        beam_size = data.draw(st.integers(1, 7), label="beam_size")
        options: dict[str, Any] = {
            "min_len": data.draw(st.integers(0, max_len_b), label="min_len"),
            "unk_penalty": data.draw(st.sampled_from([0.0, 1.5, -1.5]), label="unk_penalty"),
            "temperature": data.draw(st.sampled_from([1.0, 0.7, 2.0]), label="temperature"),
        }
        bos = data.draw(st.sampled_from([BOS, EOS]), label="bos")
        prefix = st.lists(st.just(FIRST_WORD), max_size=3).map(tuple)
        with_eos = prefix.map(lambda tokens: (*tokens, EOS))
        prefixes = data.draw(
            st.none() | st.lists(st.one_of(prefix, with_eos), min_size=len(sources), max_size=len(sources)),
            label="prefixes",
        )

        results = search(
            models,
            sources,
            prefixes,
            beam_size=beam_size,
            max_len_a=max_len_a,
            max_len_b=max_len_b,
            left_pad=data.draw(st.booleans(), label="left_pad"),
            bos=bos,
            **options,
        )

        for i, (source, result) in enumerate(zip(sources, results, strict=True)):
            forced = () if prefixes is None else prefixes[i]
            log_probs = next_log_probs(models, source, bos=bos, prefix=forced, **options)
            max_len = int(max_len_a * len(source) + max_len_b)
            assert_same_hypotheses(result, reference_search(log_probs, beam_size, max_len))


def test_stops_when_the_top_is_finished() -> None:
    """fairseq goes on, and finds the first word and EOS: (log 0.4 + log 0.99) / 2 > log 0.5."""
    dictionary, (a, b) = make_dictionary(2), (FIRST_WORD, FIRST_WORD + 1)
    rows = {(): {EOS: 0.5, a: 0.4, b: 0.1}, (a,): {EOS: 0.99, b: 0.01}}
    model = ScriptedModel(dictionary, ScriptedTable(len(dictionary), rows))
    (result,) = search([model], [(EOS,)], beam_size=2, min_len=0, max_len_b=5)
    assert [hypothesis["tokens"].tolist() for hypothesis in result] == [[EOS]]
    assert float(result[0]["score"]) == pytest.approx(math.log(0.5))


class TestBatching:
    def test_maximal_length_is_limited_by_the_decoder(self) -> None:
        dictionary = make_dictionary(2)
        table = RandomTable(0, len(dictionary), eos_bonus=-100.0)
        model = ScriptedModel(dictionary, table, positions=5)
        results = search([model], SOURCES, beam_size=2, max_len_b=200)
        assert {len(result[0]["tokens"]) for result in results} == {5}


class TestErrors:
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"beam_size": 0}, r"--beam\): expected at least 1, got 0"),
            ({"min_len": -1}, r"--min-len\): expected at least 0, got -1"),
            ({"temperature": 0.0}, r"--temperature\): expected more than 0, got 0.0"),
            ({"min_len": 4, "max_len_b": 3}, r"expected at least 4 \(--min-len, or 1\), got 3"),
            ({"min_len": 0, "max_len_b": 0}, r"expected at least 1 \(--min-len, or 1\), got 0"),
        ],
        ids=["beam", "min-len", "temperature", "min-over-max", "no-length"],
    )
    def test_options(self, options: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            search([scripted_model()], SOURCES, **options)

    def test_nan(self) -> None:
        def table(source: Tokens, history: Tokens) -> list[float]:
            is_bad = len(source) == 5 and len(history) == 3 and history[-1] == FIRST_WORD
            return [math.nan if is_bad else 0.0] * 6

        model = ScriptedModel(make_dictionary(2), table)
        with pytest.raises(ValueError, match=r"got NaN \(sentence 2 of the batch, token 3 of the output\)"):
            search([model], SOURCES, beam_size=25, min_len=4)

    @pytest.mark.parametrize(
        ("prefixes", "min_len"),
        [([(), (), (UNK,), ()], 1), (None, 1)],
        ids=["prefix-cannot-occur", "only-EOS-can-occur"],
    )
    def test_no_continuation(self, prefixes: list[Tokens] | None, min_len: int) -> None:
        impossible = [UNK] if prefixes else [BOS, UNK, 4, 5]
        model = scripted_model(num_words=2, impossible=frozenset(impossible))
        with pytest.raises(ValueError, match=r"none \(sentence \d of the batch, token 1 .*--min-len 1"):
            search([model], SOURCES, prefixes, beam_size=2, min_len=min_len)
