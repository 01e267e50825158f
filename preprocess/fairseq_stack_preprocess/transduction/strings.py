"""Tasks on strings of given lengths: reversal, copy, reverse deletion, XOR and counting."""

from __future__ import annotations

import itertools
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass

from ..text.splits import pick
from .pairs import Alphabet, Pair, Source, Word, after_reading, next_symbol


@dataclass(frozen=True)
class Lengths:
    """A distribution of lengths: uniform from ``least`` to ``greatest``, or normal and clipped to this range.

    Attributes:
        least: the least length.
        greatest: the maximum length.
        mean: mean of the normal distribution, whose values are rounded towards zero; None: uniform.
        std: its standard deviation.
    """

    least: int
    greatest: int
    mean: float | None = None
    std: float | None = None

    def draw(self, rng: random.Random) -> int:
        """Draw a length; no random number is used where there is only one."""
        if self.least == self.greatest:
            return self.least
        if self.mean is None or self.std is None:
            return self.least + int(rng.random() * (self.greatest - self.least + 1))
        return min(max(self.least, int(rng.gauss(self.mean, self.std))), self.greatest)


def numbered_symbols(number: int) -> Word:
    """The symbols 0, 1, ..."""
    return tuple(map(str, range(number)))


def draw_word(rng: random.Random, symbols: Word, length: int) -> Word:
    """A string, uniform over the strings of a length."""
    return tuple(pick(rng, symbols) for _ in range(length))


def reversal(lengths: Lengths, symbols: int) -> Source:
    """w, blanks -> blanks, the reversal of w."""
    letters, blank = numbered_symbols(symbols), str(symbols)
    return _from_words(
        lengths, letters, blank, scored=letters, pair=lambda w: after_reading(w, w[::-1], blank), per_symbol=2
    )


def copy(lengths: Lengths, symbols: int) -> Source:
    """w -> w."""
    letters = numbered_symbols(symbols)
    return _from_words(lengths, letters, str(symbols), scored=letters, pair=lambda w: Pair(w, w))


def reverse_deletion(lengths: Lengths, symbols: int) -> Source:
    """w, blanks -> blanks, the reversal of w without the second half of the alphabet, blanks."""
    letters, blank = numbered_symbols(symbols), str(symbols)
    kept = letters[: symbols // 2]

    def pair(word: Word) -> Pair:
        return after_reading(word, tuple(a for a in reversed(word) if a in kept), blank, len(word))

    return _from_words(lengths, letters, blank, scored=kept, pair=pair, per_symbol=2)


def xor(lengths: Lengths) -> Source:
    """Bits -> the XOR of all bits up to each bit."""
    return _from_bits(lengths, lambda bits: bits)


def delayed_xor(lengths: Lengths) -> Source:
    """Bits -> the XOR of all bits before each bit."""
    return _from_bits(lengths, lambda bits: [0, *bits[:-1]])


def counting(lengths: Lengths) -> Source:
    """a^n b^n -> the next symbol; scored from the first b on, which cannot be known."""
    alphabet = Alphabet(("a", "b", "#"), "#", ("b", "#"))

    def draw(rng: random.Random) -> Pair:
        n = lengths.draw(rng)
        return next_symbol(("a",) * n + ("b",) * n, alphabet.blank)

    return Source(alphabet, 2 * lengths.greatest, draw)


def _from_words(
    lengths: Lengths,
    letters: Word,
    blank: str,
    *,
    scored: Word,
    pair: Callable[[Word], Pair],
    per_symbol: int = 1,
) -> Source:
    """Pairs of a uniform string given its length; a string of n symbols gives an input of ``per_symbol`` n."""

    def draw(rng: random.Random) -> Pair:
        return pair(draw_word(rng, letters, lengths.draw(rng)))

    return Source(Alphabet((*letters, blank), blank, scored), per_symbol * lengths.greatest, draw)


def _from_bits(lengths: Lengths, evaluated: Callable[[list[int]], list[int]]) -> Source:
    """Pairs of bits and the running XOR of the bits that ``evaluated`` returns."""

    def pair(word: Word) -> Pair:
        running = itertools.accumulate(evaluated([int(bit) for bit in word]), operator.xor)
        return Pair(word, tuple(map(str, running)))

    bits = numbered_symbols(2)
    return _from_words(lengths, bits, "2", scored=bits, pair=pair)
