"""Removal of empty and unary rules, and binary rules, each step by itself."""

from __future__ import annotations

import math

import pytest

from fairseq_stack_preprocess.cfl import normal_form
from fairseq_stack_preprocess.cfl.inside import StringProbabilities
from fairseq_stack_preprocess.cfl.lengths import BinaryGrammar, LengthTable
from fairseq_stack_preprocess.cfl.normal_form import binarised, without_epsilon, without_unary_start
from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.text.pcfg import Nonterminal

from .grammar_oracle import EVERYTHING, short_strings
from .test_pcfg import as_float


def test_rules_that_are_not_used_do_no_harm() -> None:
    """Neither a nonterminal that does not occur, whose series for the empty string diverges, nor one without string."""
    grammar = parse_grammar("S -> 'a' [1] | T [1]\nT -> T 'b'\nU -> U U [1] | '' [1]")
    assert [rule.right for rule in without_epsilon(grammar).rules] == [("a",)]


@pytest.mark.parametrize("step", ["binarised", "without_epsilon", "without_unary"])
def test_each_step_alone(step: str) -> None:
    grammar = parse_grammar(EVERYTHING)
    if step == "without_unary":
        grammar = without_epsilon(grammar)
    before, changed = short_strings(grammar, 4), getattr(normal_form, step)(grammar)
    after = short_strings(changed, 4)
    nonempty = 1 - before.get((), 0.0) if step == "without_epsilon" else 1.0
    assert after == pytest.approx({w: p / nonempty for w, p in before.items() if w or step == "binarised"}, rel=1e-12)
    sizes = {len(rule.right) for rule in changed.rules}
    unary = any(len(rule.right) == 1 and isinstance(rule.right[0], Nonterminal) for rule in changed.rules)
    assert max(sizes) == (2 if step == "binarised" else 3)
    assert (0 in sizes) == (step == "binarised")
    assert unary == (step != "without_unary")


def test_exact_rational_example() -> None:
    """S -> S S 1/4 | a 1/2 | empty 1/4: e = 2 - sqrt 3; the weights follow from it."""
    empty = 2 - math.sqrt(3)
    rules = without_epsilon(parse_grammar("S -> S S [1] | 'a' [2] | '' [1]")).rules
    s = Nonterminal("S")
    assert {rule.right: rule.weight for rule in rules} == pytest.approx(
        {(s, s): 0.25 * (1 - empty), (s,): 0.5 * empty, ("a",): 0.5 / (1 - empty)}, rel=1e-13
    )


def test_start_without_unary_rules() -> None:
    """As in the papers' data: only the first rule is not unary; S -> T stays possible below."""
    grammar = parse_grammar("S -> 'a' S [1] | T [3]\nT -> 'b'")
    assert short_strings(grammar, 3) == pytest.approx({("a",) * n + ("b",): 0.75 * 0.25**n for n in range(3)})
    changed = without_unary_start(grammar)
    assert short_strings(changed, 3) == pytest.approx({("a",) * n + ("b",): 0.75 * 0.25 ** (n - 1) for n in (1, 2)})
    assert without_unary_start(changed) is changed
    with pytest.raises(ValueError, match="all rules of the start symbol S are unary"):
        without_unary_start(parse_grammar("S -> T\nT -> 'b'"))


def test_long_right_sides_share_their_ends() -> None:
    """S -> a b c d and T -> b c d have four nonterminals in all; each step takes as long as the grammar is."""
    binary = binarised(parse_grammar("S -> 'a' 'b' 'c' 'd' | T 'x'\nT -> 'b' 'c' 'd' 'd' | 'b' 'b' 'c' 'd'"))
    rules = {left.name: [rule.right for rule in binary.rules if rule.left == left] for left in binary.nonterminals}
    assert len(rules) == 2 + 2 + 2  # S and T; [b c d] and [c d], which two rules share; [c d d] and [d d]
    assert all(len(right) == 2 for rights in rules.values() for right in rights)
    expected = {("a", "b", "c", "d"): 0.5, ("b", "c", "d", "d", "x"): 0.25, ("b", "b", "c", "d", "x"): 0.25}
    found = StringProbabilities(LengthTable(BinaryGrammar.of(binary), 5))
    assert {word: as_float(value) for word in expected for value in found([word])} == expected
