"""Derivations by depth: counts, uniform draws, ambiguity; against all derivations, written out."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.text.pcfg import PCFG, Nonterminal, Rule, Symbol
from fairseq_stack_preprocess.transduction.derivations import Derivations
from fairseq_stack_preprocess.transduction.grammars import PARENTHESIS
from tests.helpers import hostile

from .enumeration import strings_of_depth

NONTERMINALS = [Nonterminal("S"), Nonterminal("A")]
SYMBOLS: list[Symbol] = ["a", "b", *NONTERMINALS]


@st.composite
def grammars(draw: st.DrawFn) -> PCFG:
    """Small grammars: ambiguous ones, with cycles, and with empty right sides."""
    sides = st.lists(st.sampled_from(SYMBOLS), max_size=3).map(tuple)
    rules = [
        Rule(left, side, 1.0)
        for left in NONTERMINALS
        for side in draw(st.lists(sides, min_size=1, max_size=3, unique=True))
    ]
    return PCFG(rules, NONTERMINALS[0])


@settings(max_examples=100)
@given(grammars(), st.integers(1, 4))
def test_counts_are_those_of_all_derivations(grammar: PCFG, depth: int) -> None:
    actual, derivations = strings_of_depth(grammar, depth), Derivations(grammar)
    assert derivations.count(depth) == actual.total()
    assert derivations.longest(depth) == max(map(len, actual), default=None)
    for word in [*list(actual)[:20], ("a", "b", "a"), ()]:
        assert derivations.ambiguity(word, depth) == actual[word]


@settings(max_examples=50)
@given(grammars(), st.integers(1, 5), st.integers(0, 100))
def test_drawn_strings_have_a_derivation_of_the_depth(grammar: PCFG, depth: int, seed: int) -> None:
    derivations, rng = Derivations(grammar), random.Random(seed)
    if derivations.count(depth):
        for draw in (derivations.draw, derivations.draw_string):
            assert derivations.ambiguity(draw(rng, depth), depth) > 0


def deviation(counts: Counter[Any], weights: Counter[Any]) -> float:
    """Chi-square statistic of counts against shares, in standard deviations from its mean."""
    expected = {word: counts.total() * weight / weights.total() for word, weight in weights.items()}
    assert counts.keys() <= expected.keys()
    assert min(expected.values()) > 5
    statistic = math.fsum((counts[word] - e) ** 2 / e for word, e in expected.items())
    freedom = len(expected) - 1
    return (statistic - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("depth", [4, hostile(5)])
def test_draws_of_parentheses_are_uniform(depth: int) -> None:
    """Over derivations in one case, over distinct strings in the other; each fails the other's test."""
    grammar = parse_grammar(PARENTHESIS)
    derivations, rng = Derivations(grammar), random.Random(depth)
    trees = strings_of_depth(grammar, depth)
    strings = Counter(dict.fromkeys(trees, 1))
    size = {4: 3000, 5: 12_000}[depth]
    of_trees = Counter(derivations.draw(rng, depth) for _ in range(size))
    of_strings = Counter(derivations.draw_string(rng, depth) for _ in range(size))
    assert abs(deviation(of_trees, trees)) < 4
    assert abs(deviation(of_strings, strings)) < 4
    assert deviation(of_trees, strings) > 5
    assert deviation(of_strings, trees) > 5


def test_shares_of_more_derivations_than_a_double_can_count() -> None:
    derivations = Derivations(parse_grammar("S -> S S | 'a' | 'b'"))
    assert derivations.count(14) > 10**1000
    assert len(derivations.draw(random.Random(0), 14)) > 1000
