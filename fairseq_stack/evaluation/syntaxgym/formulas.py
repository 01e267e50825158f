"""Predictions of SyntaxGym's suites, such as ``[(6;%what_gap%) < (6;%that_gap%)] & [(7;%a%) + (8;%a%) > 0]``.

    formula     = conjunctions with | between them
    conjunction = comparisons with & between them
    comparison  = a sum, or two sums with <, > or = between them
    sum         = terms with + or - between them
    term        = (REGION;%CONDITION%), a number, or a formula in () or []

The surprisal of a region and a number are numbers; a comparison is true or false, and | and & take nothing else.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

Surprisals = Mapping[str, Mapping[int, float]]
"""For each condition of an item, the surprisal of each region by its number."""

_TOKEN = re.compile(r"\s*(?:(\(\s*(\d+)\s*;\s*%([^%]+)%\s*\))|(\d+(?:\.\d+)?)|([-+<>=&|()\[\]]))")
_CLOSING = {"(": ")", "[": "]"}
_OPERATORS: tuple[Mapping[str, tuple[Callable[[Any, Any], Any], type]], ...] = (
    {"|": (operator.or_, bool)},
    {"&": (operator.and_, bool)},
    {"<": (operator.lt, float), ">": (operator.gt, float), "=": (operator.eq, float)},
    {"+": (operator.add, float), "-": (operator.sub, float)},
)
"""From the loosest to the tightest, what they compute and what they take; one of the third cannot follow another."""
_COMPARISON = 2

RANDOM_ITEMS = 4000
"""The standard error of a chance is at most 0.8 percentage points."""

MOST_QUOTED = 200
"""How many characters of a formula an error quotes at most."""


@dataclass(frozen=True)
class Formula:
    """A prediction.

    Attributes:
        text: as the suite has it.
        regions: the regions and conditions that it names.
        holds: whether it is true of an item's surprisals.
    """

    text: str
    regions: frozenset[tuple[int, str]]
    holds: Callable[[Surprisals], bool]


def chance(text: str) -> float:
    """The share of items of which a formula is true if all surprisals are independent and uniform.

    A formula with one comparison has about 1/2, and one with k independent comparisons about 1/2^k. There are
    :data:`RANDOM_ITEMS` items, always the same.

    Raises:
        ValueError: see :func:`parse`.
    """
    formula, generator = parse(text), random.Random(1)
    true = 0
    for _ in range(RANDOM_ITEMS):
        surprisals: dict[str, dict[int, float]] = {}
        for region, condition in sorted(formula.regions):
            surprisals.setdefault(condition, {})[region] = generator.random()
        true += formula.holds(surprisals)
    return true / RANDOM_ITEMS


@dataclass(frozen=True)
class _Term:
    """A part of a formula: its value, and whether that is a number or true or false."""

    value: Callable[[Surprisals], Any]
    kind: type


def parse(text: str) -> Formula:
    """Parse a formula.

    Raises:
        ValueError: the text is not a formula; the message says what was expected, and where.
    """
    parser = _Parser(text)
    try:
        term = parser.formula()
    except RecursionError as error:
        raise ValueError(f"{_quoted(text)} has too many nested brackets") from error
    parser.require_end()
    if term.kind is not bool:
        raise ValueError(f"{_quoted(text)} is a number; expected a comparison")
    return Formula(text, frozenset(parser.regions), term.value)


class _Parser:
    """Recursive descent, one method a rule; ``self.next`` is the token that comes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.regions: set[tuple[int, str]] = set()
        self._tokens = self._scan()
        self._advance()

    def _scan(self) -> Iterator[tuple[int, str, re.Match[str] | None]]:
        place, end = 0, len(self.text.rstrip())
        while place < end:
            match = _TOKEN.match(self.text, place)
            if match is None:
                blanks = len(self.text[place:]) - len(self.text[place:].lstrip())
                self._refuse(place + blanks, "a region, a number, an operator or a bracket")
            place = match.end()
            yield match.start(match.lastindex or 0), match[0].strip(), match
        yield end, "", None

    def _advance(self) -> None:
        self.place, self.next, self.match = next(self._tokens)

    def _refuse(self, place: int, expected: str) -> NoReturn:
        raise ValueError(f"{_quoted(self.text)}, character {place + 1}: expected {expected}")

    def require_end(self) -> None:
        if self.next:
            self._refuse(self.place, "an operator or the end")

    def formula(self, level: int = 0) -> _Term:
        """The loosest operators at ``level`` and what is between them."""
        if level == len(_OPERATORS):
            return self._term()
        first = self.formula(level + 1)
        others = []
        while self.next in _OPERATORS[level]:
            place, (compute, kind) = self.place, _OPERATORS[level][self.next]
            self._advance()
            term = self.formula(level + 1)
            if not first.kind is term.kind is kind:
                self._refuse(place, f"{'numbers' if kind is float else 'comparisons'} on both sides")
            others.append((compute, term.value))
            if level == _COMPARISON:
                break
        return _Term(_chain(first.value, others), bool if level <= _COMPARISON else float) if others else first

    def _term(self) -> _Term:
        text, match = self.next, self.match
        if match is not None and match[1]:
            region, condition = int(match[2]), match[3]
            self.regions.add((region, condition))
            self._advance()
            return _Term(lambda surprisals: surprisals[condition][region], float)
        if match is not None and match[4]:
            number = float(text)
            self._advance()
            return _Term(lambda surprisals: number, float)
        if text not in _CLOSING:
            self._refuse(self.place, "a region, a number or an opening bracket")
        self._advance()
        inner = self.formula()
        if self.next != _CLOSING[text]:
            self._refuse(self.place, f"{_CLOSING[text]!r}")
        self._advance()
        return inner


def _quoted(text: str) -> str:
    return repr(text if len(text) <= MOST_QUOTED else f"{text[:MOST_QUOTED]}...")


def _chain(
    first: Callable[[Surprisals], Any], others: Sequence[tuple[Callable[[Any, Any], Any], Callable[[Surprisals], Any]]]
) -> Callable[[Surprisals], Any]:
    """The value of terms with operators of one level between them, from left to right."""

    def value(surprisals: Surprisals) -> Any:
        result = first(surprisals)
        for compute, term in others:
            result = compute(result, term(surprisals))
        return result

    return value
