"""Strings of a given length from a grammar: the probabilities of lengths, and drawing (2020 paper, Appendix C).

The paper's Algorithm 1 sums over all ways to divide a length among the nonterminals of a rule; with at most two
symbols on a right side there are at most as many as the length.
"""

from __future__ import annotations

import itertools
import random
from bisect import bisect
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..text.pcfg import PCFG, Symbol
from .normal_form import binarised, without_epsilon, without_unary
from .scaled import Scaled


@dataclass(frozen=True)
class BinaryGrammar:
    """A grammar in which a symbol becomes a terminal or two symbols; symbols are numbers, terminals first.

    Attributes:
        terminals: the terminals; their numbers are their positions.
        number_of_symbols: terminals and nonterminals.
        start: number of the start symbol.
        lexical: for each nonterminal, pairs (terminal, weight).
        binary: for each nonterminal, triples (left symbol, right symbol, weight).
    """

    terminals: Sequence[str]
    number_of_symbols: int
    start: int
    lexical: Mapping[int, Sequence[tuple[int, float]]]
    binary: Mapping[int, Sequence[tuple[int, int, float]]]

    @classmethod
    def of(cls, grammar: PCFG) -> BinaryGrammar:
        """The grammar of the same strings except the empty one.

        Raises:
            ValueError: see :func:`.without_epsilon` and :func:`.without_unary`.
        """
        normal = without_unary(without_epsilon(binarised(grammar)))
        used = set(normal.terminals)
        terminals = [terminal for terminal in grammar.terminals if terminal in used]
        symbols: list[Symbol] = [*terminals, *normal.nonterminals]
        number = {symbol: i for i, symbol in enumerate(symbols)}
        lexical: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        binary: defaultdict[int, list[tuple[int, int, float]]] = defaultdict(list)
        for rule in normal.rules:
            match [number[symbol] for symbol in rule.right]:
                case [terminal]:
                    lexical[number[rule.left]].append((terminal, rule.weight))
                case [first, second]:
                    binary[number[rule.left]].append((first, second, rule.weight))
        return cls(terminals, len(symbols), number[normal.start], lexical, binary)

    def restricted(self, terminals: Collection[int]) -> tuple[BinaryGrammar, Sequence[int]]:
        """The grammar of the strings that have only these terminals, with the same weights.

        Returns:
            the grammar, in which symbols have other numbers, and for each of its symbols its number in this one.
        """
        used = {*terminals} & {*range(len(self.terminals))}
        if len(used) == len(self.terminals):
            return self, range(self.number_of_symbols)
        lexical = {left: [rule for rule in rules if rule[0] in used] for left, rules in self.lexical.items()}
        live = used | {left for left, rules in lexical.items() if rules}
        new = [*live]
        while new:
            for left, other in self._occurrences[new.pop()]:
                if left not in live and other in live:
                    live.add(left)
                    new.append(left)
        numbers = sorted(live | {self.start})
        new_number = {number: i for i, number in enumerate(numbers)}
        grammar = BinaryGrammar(
            [self.terminals[number] for number in sorted(used)],
            len(numbers),
            new_number[self.start],
            {
                new_number[left]: [(new_number[t], w) for t, w in rules]
                for left, rules in lexical.items()
                if left in live
            },
            {
                new_number[left]: [
                    (new_number[first], new_number[second], weight)
                    for first, second, weight in rules
                    if first in live and second in live
                ]
                for left, rules in self.binary.items()
                if left in live
            },
        )
        return grammar, numbers

    @cached_property
    def _occurrences(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """For each symbol, left side and other symbol of the binary rules that it occurs in."""
        occurrences: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for left, rules in self.binary.items():
            for first, second, _ in rules:
                occurrences[first].append((left, second))
                occurrences[second].append((left, first))
        return occurrences

    @property
    def pairs(self) -> Sequence[tuple[int, int]]:
        """The different pairs of symbols on right sides."""
        return list(dict.fromkeys((first, second) for rules in self.binary.values() for first, second, _ in rules))


class LengthTable:
    """The probability that a symbol derives some string of a given length.

    Args:
        grammar: the grammar.
        greatest: the maximum length.

    Attributes:
        probability: one number for each symbol and each length 0..greatest.
    """

    def __init__(self, grammar: BinaryGrammar, greatest: int) -> None:
        self.grammar = grammar
        self.greatest = greatest
        self.probability = Scaled.zeros(grammar.number_of_symbols, greatest + 1)
        self._fill()

    def _fill(self) -> None:
        grammar, table = self.grammar, self.probability
        if self.greatest == 0:
            return
        single = np.zeros(grammar.number_of_symbols)
        single[: len(grammar.terminals)] = 1
        for left, lexical in grammar.lexical.items():
            for _, weight in lexical:
                single[left] += weight
        table[:, 1] = Scaled.of(single)
        pairs = {pair: row for row, pair in enumerate(grammar.pairs)}
        firsts, seconds = np.array(list(pairs), dtype=np.int64).reshape(-1, 2).T
        groups = _by_number_of_rules(grammar, pairs)
        for length in range(2, self.greatest + 1):
            sums = self._sums_over_splits(firsts, seconds, length)
            for lefts, rows, weights in groups:
                table[lefts, length] = (sums[rows] * weights).sum()

    def _sums_over_splits(self, firsts: NDArray[np.int64], seconds: NDArray[np.int64], length: int) -> Scaled:
        """For each pair of symbols the probability that they derive a string of ``length`` together."""
        table, terminals = self.probability, len(self.grammar.terminals)
        sums = Scaled.zeros(len(firsts))
        # A terminal has one length: only one way to split is left.
        begins = firsts < terminals
        ends = ~begins & (seconds < terminals)
        sums[begins] = table[firsts[begins], 1] * table[seconds[begins], length - 1]
        sums[ends] = table[firsts[ends], length - 1] * table[seconds[ends], 1]
        others = ~begins & ~ends
        sums[others] = (table[firsts[others], 1:length] * table[seconds[others], length - 1 : 0 : -1]).sum()
        return sums

    def possible(self) -> NDArray[np.bool_]:
        """Whether a symbol derives a string of a length: (symbols, greatest + 1)."""
        return self.probability.fraction > 0

    def lengths(self, least: int, greatest: int) -> list[int]:
        """The lengths from ``least`` to ``greatest`` that strings of the grammar have."""
        return [n for n in range(max(least, 1), greatest + 1) if self.probability.fraction[self.grammar.start, n] > 0]


def _by_number_of_rules(
    grammar: BinaryGrammar, pairs: Mapping[tuple[int, int], int]
) -> list[tuple[list[int], NDArray[np.int64], Scaled]]:
    """The nonterminals that have the same number k of binary rules, with the rows of these rules' pairs of symbols and
    the rules' weights, both of the shape (nonterminals, k): what is summed over k is summed as for each by itself."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    for left, rules in grammar.binary.items():
        groups[len(rules)].append(left)
    return [
        (
            lefts,
            np.array([[pairs[first, second] for first, second, _ in grammar.binary[left]] for left in lefts]),
            Scaled.of(np.array([[weight for *_, weight in grammar.binary[left]] for left in lefts])),
        )
        for lefts in groups.values()
    ]


Choice = tuple[tuple[int, int], ...]
"""What a symbol of some length becomes: symbols with their lengths."""


class Sampler:
    """Draws strings of a given length from the grammar's distribution.

    Args:
        table: the probabilities of lengths.
    """

    def __init__(self, table: LengthTable) -> None:
        self._table = table
        self._choices: dict[tuple[int, int], tuple[list[float], list[Choice]]] = {}

    def sample(self, length: int, rng: random.Random) -> tuple[str, ...]:
        """A string of a length that strings have, from ``rng.random()`` alone."""
        grammar = self._table.grammar
        string = []
        # A stack of what is still to derive, the leftmost on top.
        rest: list[tuple[int, int]] = [(grammar.start, length)]
        while rest:
            node = rest.pop()
            if node[0] < len(grammar.terminals):
                string.append(grammar.terminals[node[0]])
                continue
            cumulative, choices = self._choices.get(node) or self._make_choices(node)
            rest += choices[min(bisect(cumulative, rng.random() * cumulative[-1]), len(choices) - 1)]
        return tuple(string)

    def _make_choices(self, node: tuple[int, int]) -> tuple[list[float], list[Choice]]:
        """What a symbol of a length can become, right symbol first, with cumulative weights; kept for next time."""
        symbol, length = node
        weights, choices = self._lexical(symbol) if length == 1 else self._binary(symbol, length)
        result = list(itertools.accumulate(weights)), choices
        self._choices[node] = result
        return result

    def _lexical(self, symbol: int) -> tuple[list[float], list[Choice]]:
        rules = self._table.grammar.lexical[symbol]
        return [weight for _, weight in rules], [((terminal, 1),) for terminal, _ in rules]

    def _binary(self, symbol: int, length: int) -> tuple[list[float], list[Choice]]:
        rules = self._table.grammar.binary[symbol]
        firsts, seconds = np.array([(first, second) for first, second, _ in rules]).T
        weights = Scaled.of(np.array([[weight] for *_, weight in rules]))
        table = self._table.probability
        products = table[firsts, 1:length] * table[seconds, length - 1 : 0 : -1] * weights
        flat = Scaled(products.fraction.ravel(), products.exponent.ravel())
        values, _ = flat.aligned()
        used = np.flatnonzero(values).tolist()
        choices: list[Choice] = []
        for position in used:
            row, split = divmod(position, length - 1)
            first, second, _ = rules[row]
            choices.append(((second, length - split - 1), (first, split + 1)))
        return values[used].tolist(), choices
