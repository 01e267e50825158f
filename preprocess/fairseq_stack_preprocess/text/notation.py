"""Grammars as text.

::

    # Palindromes of odd length. The first rule's left side is the start symbol.
    S -> 'a' S 'a' [0.4] | 'b' S 'b' [0.4]
       | Middle [0.2]        # a line that begins with | continues a rule
    Middle -> 'a' | 'b'

A rule is ``Left -> right [weight]``; ``|`` separates right sides. Terminals stand in single or double quotation
marks; all other names are nonterminals, and ``''`` is the empty string. A weight is a positive number, 1 if it is
left out; the weights of the rules with one left side are divided by their sum, of which each is at least 1e-12.
``#`` begins a comment.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import PrepareError
from .fairseq_words import SPECIAL_WORDS
from .pcfg import PCFG, Nonterminal, Rule, Symbol, format_symbol
from .streams import read_lines

EMPTY = "''"

LEAST_WEIGHT, GREATEST_WEIGHT = 1e-100, 1e100
"""The range of weights that can be divided by their sum without trouble."""
LEAST_SHARE = 1e-12
"""The least probability of a rule: what a less probable rule derives could disappear among rounding errors."""

_TOKEN = re.compile(
    r"""\s+ | \#.*
    | (?P<terminal>'[^']*'|"[^"]*")
    | (?P<weight>\[[^\]]*\])
    | (?P<arrow>->)
    | (?P<bar>\|)
    | (?P<name>[^\s'"\[\]|\#-]+(?:-(?!>)[^\s'"\[\]|\#-]*)*)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def read_grammar(path: Path) -> PCFG:
    """The grammar in a file, plain or gzipped.

    Raises:
        PrepareError: the file holds no grammar, or see :func:`.streams.read_blocks`; the message has the line.
    """
    return parse_grammar("\n".join(read_lines(path)), str(path))


def parse_grammar(text: str, name: str = "grammar") -> PCFG:
    """The grammar in a text; error messages use ``name`` for its source.

    Raises:
        PrepareError: the text is not a grammar; the message names the line, counted from 1.
    """
    rules: list[Rule] = []
    lines: list[int] = []
    left: Nonterminal | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        try:
            tokens: Sequence[_Token] = list(_tokens(line))
            if not tokens:
                continue
            left, tokens = _left(tokens, left)
            of_line = [Rule(left, right, weight) for right, weight in _right_sides(tokens)]
        except ValueError as error:
            raise PrepareError(f"{name}, line {number}: {error}") from error
        rules += of_line
        lines += [number] * len(of_line)
    if not rules:
        raise PrepareError(f"{name}: no rule; a rule looks like: S -> 'a' S 'b' [0.5]")
    _check_nonterminals(rules, lines, name)
    _check_shares(rules, lines, name)
    return PCFG(rules, rules[0].left)


def format_grammar(grammar: PCFG) -> str:
    """A text from which :func:`parse_grammar` makes the grammar, with a line for each rule."""
    groups = [[rule for rule in grammar.rules if rule.left == left] for left in grammar.nonterminals]
    groups.sort(key=lambda group: group[0].left != grammar.start)
    return "".join(f"{rule}\n" for group in groups for rule in group)


def _tokens(line: str) -> Iterator[_Token]:
    position = 0
    while position < len(line):
        match = _TOKEN.match(line, position)
        if match is None:
            raise ValueError(_unreadable(line, position))
        if match.lastgroup == "name" and not match.group().isprintable():
            raise ValueError(f"unexpected {match.group()!r} at column {position + 1}")
        if match.lastgroup is not None:
            yield _Token(match.lastgroup, match.group())
        position = match.end()


def _unreadable(line: str, position: int) -> str:
    """Why no token begins here."""
    character = line[position]
    where = f"column {position + 1}"
    if character in "'\"":
        return f"the quotation mark at {where} is not closed"
    if character == "[":
        return f"the bracket at {where} is not closed; a weight looks like [0.5]"
    return f"unexpected {character!r} at {where}"


def _left(tokens: Sequence[_Token], previous: Nonterminal | None) -> tuple[Nonterminal, Sequence[_Token]]:
    """The left side of a line's rules and the tokens of its right sides."""
    first = tokens[0]
    if first.kind == "bar":
        if previous is None:
            raise ValueError("a line that begins with | continues a rule, but no rule precedes it")
        return previous, tokens[1:]
    if first.kind != "name":
        raise ValueError(f"expected a nonterminal, got {first.text}; a rule looks like: S -> 'a' S 'b' [0.5]")
    if len(tokens) < 2 or tokens[1].kind != "arrow":
        instead = tokens[1].text if len(tokens) > 1 else "the end of the line"
        raise ValueError(f"expected -> after {first.text}, got {instead}")
    return Nonterminal(first.text), tokens[2:]


def _right_sides(tokens: Sequence[_Token]) -> Iterator[tuple[tuple[Symbol, ...], float]]:
    """The right sides that bars separate, with their weights."""
    side: list[_Token] = []
    for token in [*tokens, _Token("bar", "|")]:
        if token.kind == "bar":
            yield _right_side(side)
            side = []
        else:
            side.append(token)


def _right_side(tokens: Sequence[_Token]) -> tuple[tuple[Symbol, ...], float]:
    weight = 1.0
    if tokens and tokens[-1].kind == "weight":
        weight = _weight(tokens[-1].text)
        tokens = tokens[:-1]
    if not tokens:
        raise ValueError(f"a right side is missing; the empty string is written {EMPTY}")
    for token in tokens:
        if token.kind == "weight":
            raise ValueError(f"the weight {token.text} must be at the end of a right side")
        if token.kind == "arrow":
            raise ValueError("-> occurs twice; write each rule on its own line")
    symbols = (_symbol(token) for token in tokens)
    return tuple(symbol for symbol in symbols if symbol != ""), weight


def _weight(text: str) -> float:
    try:
        weight = float(text[1:-1])
    except ValueError:
        weight = 0.0
    if not LEAST_WEIGHT <= weight <= GREATEST_WEIGHT:
        expected = f"a number from {LEAST_WEIGHT} to {GREATEST_WEIGHT} in brackets, such as [0.5]"
        raise ValueError(f"a weight must be {expected}, got {text}")
    return weight


def _symbol(token: _Token) -> Symbol:
    if token.kind == "name":
        return Nonterminal(token.text)
    terminal = token.text[1:-1]
    if not terminal.isprintable() or any(character.isspace() for character in terminal):
        raise ValueError(f"a terminal must not contain spaces or control characters, got {terminal!r}")
    if terminal in SPECIAL_WORDS or terminal == "<unk>":
        raise ValueError(f"fairseq reserves the terminal {terminal}; choose another")
    return terminal


def _check_nonterminals(rules: Sequence[Rule], lines: Sequence[int], name: str) -> None:
    """Raise PrepareError if a nonterminal has no rule."""
    known = {rule.left for rule in rules}
    for rule, line in zip(rules, lines, strict=True):
        for symbol in rule.right:
            if isinstance(symbol, Nonterminal) and symbol not in known:
                hint = f"a terminal is written {format_symbol(symbol.name)}"
                raise PrepareError(f"{name}, line {line}: {symbol.name} has no rule; {hint}")


def _check_shares(rules: Sequence[Rule], lines: Sequence[int], name: str) -> None:
    """Raise PrepareError if a rule is much less probable than the others of its left side."""
    totals: defaultdict[Nonterminal, float] = defaultdict(float)
    for rule in rules:
        totals[rule.left] += rule.weight
    for rule, line in zip(rules, lines, strict=True):
        if rule.weight < LEAST_SHARE * totals[rule.left]:
            expected = f"at least {LEAST_SHARE} of the sum of the weights of {rule.left.name}, {totals[rule.left]:g}"
            raise PrepareError(f"{name}, line {line}: expected {expected}, got {rule.weight:g}; leave the rule out")
