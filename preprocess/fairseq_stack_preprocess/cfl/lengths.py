"""Strings of a given length from a grammar: the probabilities of lengths, and drawing (2020 paper, Appendix C).

The paper's Algorithm 1 sums over all ways to divide a length among the nonterminals of a rule; with at most two
symbols on a right side there are at most as many as the length.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..text.pcfg import PCFG, Symbol
from ..text.splits import pick_index
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
        for length in range(2, self.greatest + 1):
            sums = (table[firsts, 1:length] * table[seconds, length - 1 : 0 : -1]).sum()
            for left, rules in grammar.binary.items():
                rows = [pairs[first, second] for first, second, _ in rules]
                weights = Scaled.of(np.array([weight for *_, weight in rules]))
                table[left, length] = (sums[rows] * weights).sum()

    def possible(self) -> NDArray[np.bool_]:
        """Whether a symbol derives a string of a length: (symbols, greatest + 1)."""
        return self.probability.fraction > 0

    def lengths(self, least: int, greatest: int) -> list[int]:
        """The lengths from ``least`` to ``greatest`` that strings of the grammar have."""
        return [n for n in range(max(least, 1), greatest + 1) if self.probability.fraction[self.grammar.start, n] > 0]


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
            rest += choices[pick_index(rng, cumulative)]
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
