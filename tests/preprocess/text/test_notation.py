"""Grammars as text: what is read, that it is written back, and that errors name the line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.notation import format_grammar, parse_grammar
from fairseq_stack_preprocess.text.pcfg import PCFG, Nonterminal, Rule

S, A = Nonterminal("S"), Nonterminal("A-b")


def test_everything_that_the_notation_has() -> None:
    text = """
    # a comment, and a byte that is no blank: \u00e9
    S -> 'a' S "b'" [3] | A-b# no weight: 1
       | '' [2e0]  # goes on
    A-b->'#'"|"'['
    S->S S[2]
    """
    assert parse_grammar(text).rules == [
        Rule(S, ("a", S, "b'"), 3 / 8),
        Rule(S, (A,), 1 / 8),
        Rule(S, (), 2 / 8),
        Rule(S, (S, S), 2 / 8),
        Rule(A, ("#", "|", "["), 1.0),
    ]


def test_equal_rules_are_joined() -> None:
    assert parse_grammar("S -> 'a' [1] | 'b' [2] | 'a' [1]").rules == [Rule(S, ("a",), 0.5), Rule(S, ("b",), 0.5)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "g: no rule; a rule looks like: S -> 'a' S 'b' [0.5]"),
        ("S -> 'a'\nS ->", "g, line 2: a right side is missing; the empty string is written ''"),
        ("S 'a'", "g, line 1: expected -> after S, got 'a'"),
        ("'a' -> S", "g, line 1: expected a nonterminal, got 'a'; a rule looks like"),
        ("| 'a'", "g, line 1: a line that begins with | continues a rule, but no rule precedes it"),
        ("S -> 'a' -> 'b'", "g, line 1: -> occurs twice"),
        ("S -> 'a", "g, line 1: the quotation mark at column 6 is not closed"),
        ("S -> 'a' [0.5", r"g, line 1: the bracket at column 10 is not closed; a weight looks like [0.5]"),
        ("S -> 'a' ]", "g, line 1: unexpected ']' at column 10"),
        ("S -> \0", r"g, line 1: unexpected '\x00' at column 6"),
        ("S -> 'a' [x]", "g, line 1: a weight must be a number from 1e-100 to 1e+100 in brackets"),
        ("S -> 'a' [0]", "got [0]"),
        ("S -> 'a' [nan]", "got [nan]"),
        (
            "S -> 'a' [5]\nS -> 'b' [4e-12]",
            "g, line 2: expected at least 1e-12 of the sum of the weights of S, 5, got 4e-12",
        ),
        ("S -> [1] 'a'", "g, line 1: the weight [1] must be at the end of a right side"),
        ("\n\nS -> T 'a'", "g, line 3: T has no rule; a terminal is written 'T'"),
        ("S -> 'a b'", "g, line 1: a terminal must not contain spaces or control characters, got 'a b'"),
        ("S -> 'a\x85'", r"g, line 1: a terminal must not contain spaces or control characters, got 'a\x85'"),
        ("S -> '</s>'", "g, line 1: fairseq reserves the terminal </s>"),
    ],
    ids=lambda value: ascii(value)[1:20].replace("/", "") or "empty",
)
def test_mistakes_are_told_with_their_line(text: str, message: str) -> None:
    with pytest.raises(PrepareError) as caught:
        parse_grammar(text, "g")
    assert message in str(caught.value)
    assert str(caught.value).startswith("g")
    assert "\n" not in str(caught.value)


PIECES = st.sampled_from(
    [
        *["S", "T", "->", "|", "'a'", '"b"', "''", "[1]", "[0.5]", "[", "]", "'", "#", "-", ">", "é"],
        "\n",
        "\r",
        " ",
        "\0",
        "\x85",
    ]
)


@given(st.one_of(st.text(), st.lists(PIECES, max_size=30).map(" ".join), st.lists(PIECES, max_size=30).map("".join)))
def test_any_text_is_a_grammar_or_a_mistake_in_one_line(text: str) -> None:
    """And what is read can be written and read again."""
    try:
        grammar = parse_grammar(text, "g")
    except PrepareError as error:
        assert str(error).startswith("g")
        assert "\n" not in str(error)
    else:
        assert_same_after_round_trip(grammar)


TERMINALS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=3).filter(
    lambda text: text not in ("<s>", "<pad>", "</s>", "<unk>") and not ("'" in text and '"' in text)
)
SYMBOLS = st.one_of(TERMINALS, st.sampled_from([S, A]))
RULES = st.builds(
    Rule,
    st.sampled_from([S, A]),
    st.lists(SYMBOLS, max_size=4).map(tuple),
    st.floats(1e-5, 1e5, allow_subnormal=False),
)


@given(st.lists(RULES, max_size=6))
def test_any_grammar_round_trips(rules: list[Rule]) -> None:
    assert_same_after_round_trip(PCFG([*rules, Rule(S, (A,), 1.0), Rule(A, ("a",), 1.0)], S))


def assert_same_after_round_trip(grammar: PCFG) -> None:
    again = parse_grammar(format_grammar(grammar))
    assert again.start == grammar.start
    expected = {(rule.left, rule.right): rule.weight for rule in grammar.rules}
    assert {(rule.left, rule.right): rule.weight for rule in again.rules} == pytest.approx(expected, rel=1e-12)
