"""The derivations of a grammar up to a depth: counts, uniform draws, and ambiguity.

The *depth* of a derivation is the number of nodes on the longest path of its tree, from the start symbol to a terminal.
A depth D lets D - 1 rules be applied on each path: these are the *levels*. Weights of rules play no part here.
"""

from __future__ import annotations

import functools
import itertools
import math
import random

from ..text.pcfg import PCFG, Nonterminal
from .pairs import Word

Item = str | int
"""A terminal, or the number of a nonterminal."""

Side = tuple[Item, ...]
"""The right side of a rule."""


class Derivations:
    """The derivations of a grammar.

    Args:
        grammar: the grammar; several derivations may give one string, and cycles are allowed.
    """

    def __init__(self, grammar: PCFG) -> None:
        numbers = {nonterminal: number for number, nonterminal in enumerate(grammar.nonterminals)}
        self._start = numbers[grammar.start]
        self._sides: list[list[Side]] = [[] for _ in numbers]
        for rule in grammar.rules:
            side = (numbers[item] if isinstance(item, Nonterminal) else item for item in rule.right)
            self._sides[numbers[rule.left]].append(tuple(side))
        self._counts: list[list[int]] = [[0] * len(numbers)]
        self._choices: dict[tuple[int, int], tuple[list[float], list[Side]]] = {}

    def count(self, depth: int) -> int:
        """The number of derivations of at most this depth."""
        return self._count(self._start, depth - 1)

    def longest(self, depth: int) -> int | None:
        """The length of the longest string with a derivation of at most this depth; None if there is no string."""
        lengths = [-math.inf] * len(self._sides)
        for _ in range(depth - 1):
            of_sides = [
                [sum(lengths[item] if isinstance(item, int) else 1 for item in side) for side in sides]
                for sides in self._sides
            ]
            lengths = [max(totals, default=-math.inf) for totals in of_sides]
        longest = lengths[self._start]
        return None if longest == -math.inf else int(longest)

    def draw(self, rng: random.Random, depth: int) -> Word:
        """Draw a derivation, uniform over the derivations of at most this depth, and return its string.

        The tree grows level by level: in the order of the string, each nonterminal takes one random number, which
        chooses among its rules by their shares of the derivations that the levels below allow. This order is the
        authors', so that the same random numbers give their strings.
        """
        form: list[Item] = [self._start]
        for levels in range(depth - 1, 0, -1):
            grown: list[Item] = []
            for item in form:
                if isinstance(item, int):
                    grown += self._choose(rng, item, levels)
                else:
                    grown.append(item)
            form = grown
        return tuple(map(str, form))

    def draw_string(self, rng: random.Random, depth: int) -> Word:
        """Draw a string, uniform over the distinct strings with a derivation of at most this depth.

        A drawn derivation is kept with probability 1 / (number of derivations of its string).
        """
        while True:
            string = self.draw(rng, depth)
            if int(rng.random() * self.ambiguity(string, depth)) == 0:
                return string

    def ambiguity(self, string: Word, depth: int) -> int:
        """The number of derivations of ``string`` of at most this depth."""

        @functools.cache
        def of_nonterminal(nonterminal: int, start: int, levels: int) -> dict[int, int]:
            """For each end, the number of derivations of the string from ``start`` to there."""
            ends: dict[int, int] = {}
            for side in self._sides[nonterminal] if levels > 0 else ():
                for end, ways in of_side(side, start, levels - 1).items():
                    ends[end] = ends.get(end, 0) + ways
            return ends

        def of_side(side: Side, start: int, levels: int) -> dict[int, int]:
            ends = {start: 1}
            for item in side:
                beyond: dict[int, int] = {}
                for place, ways in ends.items():
                    if isinstance(item, int):
                        for end, more in of_nonterminal(item, place, levels).items():
                            beyond[end] = beyond.get(end, 0) + ways * more
                    elif string[place : place + 1] == (item,):
                        beyond[place + 1] = ways
                ends = beyond
            return ends

        return of_nonterminal(self._start, 0, depth - 1).get(len(string), 0)

    def _count(self, nonterminal: int, levels: int) -> int:
        """The number of derivations from a nonterminal by at most so many levels."""
        while len(self._counts) <= levels:
            below = len(self._counts) - 1
            self._counts.append([sum(self._count_side(side, below) for side in sides) for sides in self._sides])
        return self._counts[max(levels, 0)][nonterminal]

    def _count_side(self, side: Side, levels: int) -> int:
        return math.prod(self._count(item, levels) for item in side if isinstance(item, int))

    def _choose(self, rng: random.Random, nonterminal: int, levels: int) -> Side:
        """The right side of a rule, chosen by one random number."""
        key = nonterminal, levels
        if key not in self._choices:
            self._choices[key] = self._shares(nonterminal, levels)
        shares, sides = self._choices[key]
        drawn = rng.random()
        return next(side for share, side in zip(shares, sides, strict=True) if drawn <= share)

    def _shares(self, nonterminal: int, levels: int) -> tuple[list[float], list[Side]]:
        """The right sides that have derivations, and the share of each and of those before it."""
        counts = {side: self._count_side(side, levels - 1) for side in self._sides[nonterminal]}
        sides = [side for side, count in counts.items() if count]
        parts = list(itertools.accumulate(counts[side] for side in sides))
        return [part / parts[-1] for part in parts], sides
