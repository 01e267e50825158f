"""Steps to the normal form: what test_pcfg.py, which has whole grammars, does not show of them."""

from __future__ import annotations

import pytest

from fairseq_stack_preprocess.cfl.normal_form import binarised, without_epsilon, without_unary_start
from fairseq_stack_preprocess.text.notation import parse_grammar

from .grammar_oracle import short_strings


def test_rules_that_are_not_used_do_no_harm() -> None:
    """Neither a nonterminal that does not occur, whose series for the empty string diverges, nor one without string."""
    grammar = parse_grammar("S -> 'a' [1] | T [1]\nT -> T 'b'\nU -> U U [1] | '' [1]")
    assert [rule.right for rule in without_epsilon(grammar).rules] == [("a",)]


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
