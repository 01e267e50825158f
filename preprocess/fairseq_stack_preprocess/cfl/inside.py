"""The probability that a grammar derives a given string, summed over derivations (the inside algorithm).

Many strings of one length are computed together, in doubles. Only element-wise products and sums in a fixed order
are used, which have one right result on every machine. Where a product leaves the range of doubles, the strings are
computed again one by one with numbers of any magnitude, which takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from .lengths import BinaryGrammar, LengthTable
from .scaled import Scaled

Values = NDArray[np.float64]

ELEMENTS_AT_ONCE = 8_000_000
"""How many numbers the tables of the strings that are computed together may hold, about."""

GREATEST_BATCH = 64
"""How many strings are computed together at most: more do not fit into the processor's cache."""


def string_probabilities(table: LengthTable, strings: Sequence[Sequence[str]]) -> Iterator[Scaled]:
    """The probability of each of some strings of one length, in their order; 0 for strings not in the language.

    Args:
        table: probabilities of lengths under the grammar, up to the length of the strings.
        strings: one or more.
    """
    grammar, possible, length = table.grammar, table.possible(), len(strings[0])
    number = {terminal: i for i, terminal in enumerate(grammar.terminals)}
    elements = grammar.number_of_symbols * length * length // 2 + 1
    size = min(max(ELEMENTS_AT_ONCE // elements, 1), GREATEST_BATCH)
    for start in range(0, len(strings), size):
        numbers = np.array([[number.get(symbol, -1) for symbol in string] for string in strings[start : start + size]])
        try:
            with np.errstate(under="raise", over="raise"):
                totals = Chart(grammar, possible, numbers.T).total()
        except FloatingPointError:
            yield from (scaled_probability(grammar, string) for string in numbers)
        else:
            yield from map(Scaled.of, totals)


class Chart:
    """The inside values of all spans of some strings of one length, in doubles.

    Where products leave their range, values are wrong, and numpy reports an underflow or overflow.

    Args:
        grammar: the grammar.
        possible: whether a symbol derives any string of a length: (symbols, at least length + 1).
        strings: the numbers of terminals, -1 for any other symbol: (length, strings).

    Attributes:
        values: for each symbol, the values of the spans of a length: ``values[symbol][length]`` is an array (first
            positions, strings). Lengths are in ascending order; a length whose values are all 0 is left out.
    """

    def __init__(self, grammar: BinaryGrammar, possible: NDArray[np.bool_], strings: NDArray[np.int64]) -> None:
        self.grammar = grammar
        self.possible = possible
        self.strings = strings
        self.values: list[dict[int, Values]] = [{} for _ in range(grammar.number_of_symbols)]
        self._buffer = np.empty(strings.shape)
        self._fill_single()
        for length in range(2, len(strings) + 1):
            self._fill_length(length)

    def total(self) -> NDArray[np.float64]:
        """The probabilities of the strings, (strings,)."""
        length, number = self.strings.shape
        whole = self.values[self.grammar.start].get(length)
        return np.zeros(number) if whole is None else whole[0]

    def _fill_single(self) -> None:
        for terminal in range(len(self.grammar.terminals)):
            self.values[terminal][1] = (self.strings == terminal).astype(np.float64)
        for left, rules in self.grammar.lexical.items():
            total = np.zeros(self.strings.shape)
            for terminal, weight in rules:
                total += self.values[terminal][1] * weight
            self.values[left][1] = total

    def _fill_length(self, length: int) -> None:
        """Fill in the values of spans of ``length``, given the values of shorter spans."""
        sums: dict[tuple[int, int], Values | None] = {}
        for left, rules in self.grammar.binary.items():
            if not self.possible[left, length]:
                continue
            total = np.zeros((len(self.strings) - length + 1, self.strings.shape[1]))
            for first, second, weight in rules:
                if (first, second) not in sums:
                    sums[first, second] = self._sum_over_splits(first, second, length)
                products = sums[first, second]
                if products is not None:
                    total += products * weight
            if total.any():
                self.values[left][length] = total

    def _sum_over_splits(self, first: int, second: int, length: int) -> Values | None:
        """The sum over k of the values of ``first`` on the first k positions of a span times those of ``second`` on
        the rest; None if no k is possible."""
        firsts, seconds = self.values[first], self.values[second]
        number = len(self.strings) - length + 1
        buffer = self._buffer[:number]
        total = None
        for split in firsts:  # in ascending order
            if length - split not in seconds:
                continue
            left = firsts[split][:number]
            right = seconds[length - split][split:]
            if total is None:
                total = left * right
            else:
                np.multiply(left, right, out=buffer)
                total += buffer
        return total


def scaled_probability(grammar: BinaryGrammar, string: NDArray[np.int64]) -> Scaled:
    """The probability of one string (its terminals' numbers, -1 for other symbols), whatever its magnitude."""
    n = len(string)
    values = Scaled.zeros(grammar.number_of_symbols, n, n + 1)
    single = np.zeros((grammar.number_of_symbols, n))
    single[: len(grammar.terminals)] = string == np.arange(len(grammar.terminals))[:, None]
    for left, lexical in grammar.lexical.items():
        for terminal, weight in lexical:
            single[left] += single[terminal] * weight
    values[:, :, 1] = Scaled.of(single)
    pairs = {pair: row for row, pair in enumerate(grammar.pairs)}
    firsts, seconds = np.array(list(pairs), dtype=np.int64).reshape(-1, 2, 1, 1).transpose(1, 0, 2, 3)
    for length in range(2, n + 1):
        start, split = np.ogrid[: n - length + 1, 1:length]
        sums = (values[firsts, start, split] * values[seconds, start + split, length - split]).sum()
        for left, rules in grammar.binary.items():
            rows = [pairs[first, second] for first, second, _ in rules]
            weights = Scaled.of(np.array([weight for *_, weight in rules]))
            values[left, : n - length + 1, length] = (sums[rows].T * weights).sum()
    return values[grammar.start, 0, n]
