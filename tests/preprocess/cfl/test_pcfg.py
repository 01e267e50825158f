"""Grammars, tables of lengths, probabilities of strings and samples, against the grammar's equations."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fairseq_stack_preprocess.cfl.distributions import GrammarDistribution
from fairseq_stack_preprocess.cfl.inside import Chart, scaled_probability, string_probabilities
from fairseq_stack_preprocess.cfl.languages import LANGUAGES, Word
from fairseq_stack_preprocess.cfl.lengths import BinaryGrammar, LengthTable, Sampler
from fairseq_stack_preprocess.cfl.normal_form import without_epsilon
from fairseq_stack_preprocess.cfl.scaled import Scaled, log_of
from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.text.pcfg import PCFG, Nonterminal, Rule, Symbol

from .grammar_oracle import EVERYTHING, NotConverged, Strings, short_strings

NONTERMINALS = [Nonterminal(name) for name in "STU"]
SYMBOLS: st.SearchStrategy[Symbol] = st.sampled_from([*NONTERMINALS, "a", "b"])
RIGHT_SIDES = st.lists(st.tuples(st.lists(SYMBOLS, max_size=3), st.integers(1, 9)), min_size=1, max_size=3)


def grammar_of(sides: list[list[tuple[list[Symbol], int]]]) -> PCFG:
    rules = [
        Rule(left, tuple(right), weight)
        for left, group in zip(NONTERMINALS, sides, strict=True)
        for right, weight in group
    ]
    return PCFG(rules, NONTERMINALS[0])


def as_float(number: Scaled) -> float:
    return math.ldexp(float(number.fraction), int(number.exponent))


def log_length_probability(table: LengthTable, length: int) -> float:
    """log of the probability that a string that is not empty has ``length``, in nats."""
    return float(log_of(table.probability[table.grammar.start, length]))


def assert_same_distribution(grammar: PCFG, strings: Strings, greatest: int) -> None:
    """Of the strings that are not empty, with their probabilities given that they are not."""
    nonempty = 1 - strings.get((), 0.0)
    expected = {word: probability / nonempty for word, probability in strings.items() if word}
    table = LengthTable(BinaryGrammar.of(grammar), greatest)
    for length in range(1, greatest + 1):
        words = list(itertools.product(table.grammar.terminals, repeat=length))
        actual = dict(zip(words, map(as_float, string_probabilities(table, words)), strict=True))
        assert actual == pytest.approx({word: expected.get(word, 0.0) for word in words}, rel=1e-9, abs=1e-13)
        total = table.probability[table.grammar.start, length]
        assert as_float(total) == pytest.approx(math.fsum(actual.values()), rel=1e-12)


def test_all_kinds_of_rules_against_the_equations() -> None:
    grammar = parse_grammar(EVERYTHING)
    assert_same_distribution(grammar, short_strings(grammar, 4), 4)


@given(st.tuples(RIGHT_SIDES, RIGHT_SIDES, RIGHT_SIDES).map(list).map(grammar_of))
def test_any_grammar_against_its_equations(grammar: PCFG) -> None:
    try:
        strings = short_strings(grammar, 3)
    except NotConverged:
        assume(False)
    assume(strings.get((), 0.0) < 1 - 1e-4)
    assume(converges(grammar))
    if any(strings.keys() - {()}):
        assert_same_distribution(grammar, strings, 3)
    else:
        assert lengths_of(grammar) == []


def converges(grammar: PCFG) -> bool:
    """Whether probabilities of the empty string can be computed, even those that only longer strings need."""
    try:
        without_epsilon(grammar)
    except ValueError as error:
        return "do not converge" not in str(error)
    return True


def lengths_of(grammar: PCFG) -> list[int]:
    try:
        return GrammarDistribution(grammar, 3).lengths(1, 3)
    except ValueError as error:
        assert "except perhaps the empty one" in str(error)
        return []


CHAIN = "S -> N0\n" + "".join(f"N{i} -> N{i + 1} | 'a' N{i + 1}\n" for i in range(1000)) + "N1000 -> 'a'"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("S -> S 'a'", "no string can be derived from S, except perhaps the empty one"),
        ("S -> ''", "no string can be derived from S, except perhaps the empty one"),
        ("S -> S | T [2e-12]\nT -> S | 'a' [2e-12]", "the unary rules of T form a cycle that is never left"),
        ("S -> S S [1] | '' [1]", "the probabilities of the empty string do not converge"),
        (CHAIN, r"the unary rules \(X -> Y\) form chains that stand for more than 200,000"),
    ],
    ids=["endless", "empty", "cycle", "critical", "chain"],
)
def test_grammars_without_strings(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GrammarDistribution(parse_grammar(text), 5)


@pytest.mark.parametrize("rules", ["'' [1] | T [0.001]", "'' [9] | U [0.2]\nU -> ''"])
def test_a_nonterminal_that_is_always_empty(rules: str) -> None:
    """The rounded weights of its rules may have a sum above 1."""
    distribution = GrammarDistribution(parse_grammar(f"S -> 'a' T S | 'b'\nT -> {rules}"), 3)
    words = ["b", "ab", "aab"]
    assert [dict(distribution.log_probabilities([tuple(word)]))[0] for word in words] == pytest.approx([0, 0, 0])


def test_lengths_and_strings_that_do_not_exist() -> None:
    table = LengthTable(BinaryGrammar.of(parse_grammar("S -> 'a' S 'b' | 'a' 'b'")), 9)
    assert table.lengths(0, 9) == [2, 4, 6, 8]
    assert [float(p.fraction) for p in string_probabilities(table, ["ba", "xx", "aa"])] == [0.0, 0.0, 0.0]


def test_samples_follow_the_probabilities() -> None:
    """Chi-square, for an ambiguous grammar with rules of all kinds."""
    grammar = parse_grammar(EVERYTHING)
    strings: Strings = {word: p for word, p in short_strings(grammar, 5).items() if len(word) == 5}
    sampler, rng = Sampler(LengthTable(BinaryGrammar.of(grammar), 5)), random.Random("chi-square")
    counts = Counter[Word](sampler.sample(5, rng) for _ in range(20_000))
    assert_chi_square(counts, strings)


def assert_chi_square(counts: Counter[Word], probabilities: Strings) -> None:
    """The counts are within 5 standard deviations of the statistic's mean; rare strings are one cell."""
    total = math.fsum(probabilities.values())
    size = counts.total()
    expected = {word: size * p / total for word, p in probabilities.items()}
    assert counts.keys() <= expected.keys()
    cells = [(counts[word], e) for word, e in expected.items() if e >= 5]
    rare = [(counts[word], e) for word, e in expected.items() if e < 5]
    if rare:
        cells.append((sum(c for c, _ in rare), math.fsum(e for _, e in rare)))
    statistic = math.fsum((count - e) ** 2 / e for count, e in cells)
    freedom = len(cells) - 1
    assert freedom > 10
    assert abs(statistic - freedom) < 5 * math.sqrt(2 * freedom)


@pytest.mark.parametrize("name", [name for name, language in LANGUAGES.items() if language.grammar])
def test_doubles_and_numbers_of_any_magnitude_agree(name: str) -> None:
    language = LANGUAGES[name]
    assert language.grammar is not None
    table = LengthTable(BinaryGrammar.of(parse_grammar(language.grammar(language.defaults))), 23)
    sampler, rng = Sampler(table), random.Random(name)
    number = {terminal: i for i, terminal in enumerate(table.grammar.terminals)}
    for length in table.lengths(1, 23)[-3:]:
        strings = np.array([[number[symbol] for symbol in sampler.sample(length, rng)] for _ in range(3)]).T
        doubles = Chart(table.grammar, table.possible(), strings).total()
        for string, double in zip(strings.T, doubles.tolist(), strict=True):
            scaled = scaled_probability(table.grammar, string)
            assert as_float(scaled) == pytest.approx(double, rel=1e-13)


def test_probabilities_below_the_range_of_doubles() -> None:
    """p(a^n) = 0.001^(n-1) * 0.999, both by the table of lengths and for a string, whose only string it is."""
    grammar = parse_grammar("S -> 'a' S [1] | 'a' [999]")
    distribution = GrammarDistribution(grammar, 400)
    expected = 399 * math.log(0.001) + math.log(0.999)
    assert expected < math.log(5e-324)
    table = LengthTable(BinaryGrammar.of(grammar), 400)
    assert log_length_probability(table, 400) == pytest.approx(expected, rel=1e-13)
    assert list(distribution.log_probabilities([("a",) * 400])) == [(0, pytest.approx(0, abs=1e-12))]
    assert distribution.sample(400, random.Random(0)) == ("a",) * 400
