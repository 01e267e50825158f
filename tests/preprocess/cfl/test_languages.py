"""The twelve languages: golden probabilities, sums over all strings, recognisers, samples, parameters."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from pathlib import Path

import pytest

from fairseq_stack_preprocess.cfl.distributions import Distribution, distribution_of
from fairseq_stack_preprocess.cfl.languages import LANGUAGES, Word
from fairseq_stack_preprocess.cfl.lengths import BinaryGrammar, LengthTable
from fairseq_stack_preprocess.cfl.normal_form import without_epsilon, without_unary_start
from fairseq_stack_preprocess.cfl.recognisers import Recogniser, recogniser_of
from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.text.pcfg import PCFG
from tests.helpers import each_golden_file

from .grammar_oracle import short_strings
from .test_pcfg import assert_chi_square, log_length_probability

CONTEXT_FREE = ["marked-reversal", "unmarked-reversal", "padded-reversal", "dyck", "hardest-cfl"]


def make(name: str, greatest: int = 100, **parameters: float) -> Distribution:
    language = LANGUAGES[name]
    return distribution_of(language, language.parameters(parameters), greatest)


def recogniser(name: str) -> Recogniser:
    return recogniser_of(LANGUAGES[name], LANGUAGES[name].defaults)


def grammar_in_the_data(name: str) -> PCFG:
    """The grammar of the papers' data, without the empty string."""
    language = LANGUAGES[name]
    assert language.grammar is not None
    return without_unary_start(without_epsilon(parse_grammar(language.grammar(language.defaults))))


@each_golden_file("cfl_log_probabilities*.jsonl")
@pytest.mark.parametrize("name", CONTEXT_FREE)
def test_golden_log_probabilities(name: str, path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"] == name]
    assert len(rows) > 12
    distribution = make(name)
    table = LengthTable(BinaryGrammar.of(grammar_in_the_data(name)), 100)
    valid = [row for row in rows if row["valid"]]
    actual = dict(distribution.log_probabilities([tuple(row["tokens"]) for row in valid]))
    for i, row in enumerate(valid):
        assert actual[i] == pytest.approx(row["log_prob_given_length"], abs=1e-9, rel=0)
        assert log_length_probability(table, row["length"]) == pytest.approx(row["log_prob_length"], abs=1e-9, rel=0)
    for row in rows:
        assert distribution.lengths(row["length"], row["length"]) == [row["length"]] * row["valid"]


@pytest.mark.parametrize("name", LANGUAGES)
def test_every_sample_is_recognised(name: str) -> None:
    """By a recogniser that knows nothing of the grammar; it rejects the string with another last symbol."""
    distribution, rng, recognise = make(name), random.Random(name), recogniser(name)
    for length in distribution.lengths(40, 100):
        for _ in range(20):
            word = distribution.sample(length, rng)
            assert len(word) == length
            assert set(word) <= set(distribution.vocabulary)
            assert recognise(word)
            other = next(symbol for symbol in distribution.vocabulary if symbol != word[-1])
            assert not recognise((*word[:-1], other))


def short_language(name: str) -> dict[Word, float]:
    """The strings of at most 8 symbols with their probabilities in the papers' data, by the grammar's equations."""
    return short_strings(grammar_in_the_data(name), 8)


@pytest.mark.parametrize("name", CONTEXT_FREE)
def test_probabilities_of_all_strings_of_a_length_sum_to_one(name: str) -> None:
    words, distribution = short_language(name), make(name)
    lengths = distribution.lengths(1, 8)
    assert lengths == sorted({len(word) for word in words})
    for length in lengths:
        of_length = {word: p for word, p in words.items() if len(word) == length}
        total = math.fsum(of_length.values())
        actual = dict(distribution.log_probabilities(list(of_length)))
        assert math.fsum(map(math.exp, actual.values())) == pytest.approx(1, rel=1e-12)
        for i, (word, p) in enumerate(of_length.items()):
            assert math.exp(actual[i]) == pytest.approx(p / total, rel=1e-10)
            assert recogniser(name)(word)


def test_uniform_samples_follow_the_exact_probabilities() -> None:
    distribution, rng = make("count-and-copy"), random.Random(0)
    counts = Counter(distribution.sample(15, rng) for _ in range(10_000))
    assert_chi_square(counts, {(*w, *"#####", *w): 1 / 32 for w in itertools.product("01", repeat=5)})


@pytest.mark.parametrize("name", ["unmarked-reversal", "count-3"])
def test_lengths_without_strings(name: str) -> None:
    distribution, rng = make(name), random.Random(0)
    for length in (0, 100 if name == "count-3" else 99):
        with pytest.raises(ValueError, match=f"length: no string has the length {length}"):
            distribution.sample(length, rng)


def test_lengths_above_the_maximum() -> None:
    distribution = make("unmarked-reversal")
    too_long = ("0",) * 102
    with pytest.raises(ValueError, match="length: expected at most 100, the maximum length, got 102"):
        distribution.sample(102, random.Random(0))
    with pytest.raises(ValueError, match="length: expected at most 100, the maximum length, got 102"):
        list(distribution.log_probabilities([too_long]))


def test_symbols_and_brackets_of_other_numbers() -> None:
    assert make("marked-reversal", symbol_types=4).vocabulary == ["0", "1", "2", "3", "#"]
    assert make("unmarked-copy-different-alphabets", symbol_types=3).vocabulary == list("012345")
    assert make("dyck", bracket_types=6).vocabulary == [*"()[]{}<>", "(4", ")4", "(5", ")5"]
