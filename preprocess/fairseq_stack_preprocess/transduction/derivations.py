"""The derivations of a grammar up to a depth: counts, uniform draws, and ambiguity.

The *depth* of a derivation is the number of nodes on the longest path of its tree, from the start symbol to a terminal.
A depth D lets D - 1 rules be applied on each path: these are the *levels*. Weights of rules play no part here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence

from ..text.pcfg import PCFG, Nonterminal, Symbol
from .pairs import Word

Side = tuple[Symbol, ...]


class Derivations:
    """The derivations of a grammar.

    Args:
        grammar: the grammar; several derivations may give one string, and cycles are allowed.
    """

    def __init__(self, grammar: PCFG) -> None:
        self._start = grammar.start
        self._sides: dict[Nonterminal, list[Side]] = {left: [] for left in grammar.nonterminals}
        for rule in grammar.rules:
            self._sides[rule.left].append(rule.right)
        self._counts: list[dict[Nonterminal, int]] = [dict.fromkeys(self._sides, 0)]
        self._choices: dict[tuple[Nonterminal, int], tuple[list[float], list[Side]]] = {}

    def count(self, depth: int) -> int:
        """The number of derivations of at most this depth."""
        return self._count(self._start, depth - 1)

    def longest(self, depth: int) -> int | None:
        """The length of the longest string with a derivation of at most this depth; None if there is no string."""
        lengths: dict[Nonterminal, int | None] = dict.fromkeys(self._sides)
        for _ in range(depth - 1):
            lengths = {left: _longest(sides, lengths) for left, sides in self._sides.items()}
        return lengths[self._start]

    def draw(self, rng: random.Random, depth: int) -> Word:
        """Draw a derivation, uniform over the derivations of at most this depth, and return its string.

        The tree grows level by level: in the order of the string, each nonterminal takes one random number, which
        chooses among its rules by their shares of the derivations that the levels below allow. This order is the
        authors', so that the same random numbers give their strings.

        Raises:
            ValueError: there is none.
        """
        if not self.count(depth):
            raise ValueError(f"the grammar has no derivation of at most depth {depth}")
        form: list[Symbol] = [self._start]
        for levels in range(depth - 1, 0, -1):
            grown: list[Symbol] = []
            for symbol in form:
                if isinstance(symbol, Nonterminal):
                    grown += self._choose(rng, symbol, levels)
                else:
                    grown.append(symbol)
            form = grown
        return tuple(map(str, form))

    def draw_string(self, rng: random.Random, depth: int) -> Word:
        """Draw a string, uniform over the distinct strings with a derivation of at most this depth.

        A drawn derivation is kept with probability 1 / (number of derivations of its string).

        Raises:
            ValueError: there is none.
        """
        while True:
            string = self.draw(rng, depth)
            if int(rng.random() * self.ambiguity(string, depth)) == 0:
                return string

    def ambiguity(self, string: Word, depth: int) -> int:
        """The number of derivations of ``string`` of at most this depth."""
        ends = _Ends(self._sides, string)
        return ends.of_symbol(self._start, 0, depth - 1).get(len(string), 0)

    def _count(self, symbol: Nonterminal, levels: int) -> int:
        """The number of derivations from a nonterminal by at most so many levels."""
        while len(self._counts) <= levels:
            below = len(self._counts) - 1
            self._counts.append(
                {left: sum(self._count_side(side, below) for side in sides) for left, sides in self._sides.items()}
            )
        return self._counts[max(levels, 0)][symbol]

    def _count_side(self, side: Side, levels: int) -> int:
        product = 1
        for symbol in side:
            if isinstance(symbol, Nonterminal):
                product *= self._count(symbol, levels)
        return product

    def _choose(self, rng: random.Random, symbol: Nonterminal, levels: int) -> Side:
        """The right side of a rule, chosen by one random number."""
        key = symbol, levels
        if key not in self._choices:
            counts = [(self._count_side(side, levels - 1), side) for side in self._sides[symbol]]
            counts = [(count, side) for count, side in counts if count]
            total = sum(count for count, _ in counts)
            shares = [part / total for part in itertools.accumulate(count for count, _ in counts)]
            self._choices[key] = shares, [side for _, side in counts]
        shares, sides = self._choices[key]
        drawn = rng.random()
        return next(side for share, side in zip(shares, sides, strict=True) if drawn <= share)


def _longest(sides: Sequence[Side], below: Mapping[Nonterminal, int | None]) -> int | None:
    """The greatest length that one of the right sides can get, given the greatest lengths of nonterminals."""
    found = []
    for side in sides:
        lengths = [below[symbol] if isinstance(symbol, Nonterminal) else 1 for symbol in side]
        if None not in lengths:
            found.append(sum(length for length in lengths if length is not None))
    return max(found, default=None)


class _Ends:
    """Where the parts of one string that a nonterminal derives can end."""

    def __init__(self, sides: Mapping[Nonterminal, Sequence[Side]], string: Word) -> None:
        self._sides = sides
        self._string = string
        self._known: dict[tuple[Nonterminal, int, int], dict[int, int]] = {}

    def of_symbol(self, symbol: Nonterminal, start: int, levels: int) -> Mapping[int, int]:
        """For each end, the number of derivations of the string from ``start`` to there, by at most so many levels."""
        key = symbol, start, levels
        if key not in self._known:
            found: dict[int, int] = {}
            for side in self._sides[symbol] if levels > 0 else ():
                for end, ways in self._of_side(side, start, levels - 1).items():
                    found[end] = found.get(end, 0) + ways
            self._known[key] = found
        return self._known[key]

    def _of_side(self, side: Side, start: int, levels: int) -> Mapping[int, int]:
        ends = {start: 1}
        for symbol in side:
            beyond: dict[int, int] = {}
            for place, ways in ends.items():
                if isinstance(symbol, Nonterminal):
                    for end, more in self.of_symbol(symbol, place, levels).items():
                        beyond[end] = beyond.get(end, 0) + ways * more
                elif place < len(self._string) and self._string[place] == symbol:
                    beyond[place + 1] = ways
            if not beyond:
                return beyond
            ends = beyond
        return ends
