"""The questions of problems: random strings of a given length, as Delétang et al. (2023) and DeltaStack draw them."""

from __future__ import annotations

import random
from collections.abc import Callable

from ..text.splits import pick
from .answers import BRACKETS, DELIMITER, HIDDEN, PADDING
from .chomsky import ACTIONS, BITS, DIGITS, POP
from .pairs import Word
from .strings import draw_word

Draw = Callable[[random.Random, int], Word]

CONTINUED = 0.85
"""The probability with which opening or closing brackets continue in DeltaStack's Dyck language."""


def uniform(symbols: Word) -> Draw:
    """Strings that are uniform given their length."""
    return lambda rng, length: draw_word(rng, symbols, length)


def ending_in(end: str, draw: Draw) -> Draw:
    """The same strings, shorter by one, and ``end``."""
    return lambda rng, length: (*draw(rng, length - 1), end)


def expression(rng: random.Random, length: int) -> Word:
    """Digits with operators between them; ``length`` is odd."""
    return tuple(pick(rng, "+-*" if place % 2 else DIGITS) for place in range(length))


def duplicate_with_hole(rng: random.Random, length: int) -> Word:
    """w w with one bit hidden, and padding if ``length`` is odd."""
    if length == 1:
        return ("1",)
    return _with_hole(rng, draw_word(rng, BITS, length // 2) * 2) + (PADDING,) * (length % 2)


def palindrome_with_hole(rng: random.Random, length: int) -> Word:
    """A palindrome with one bit hidden."""
    half = draw_word(rng, BITS, (length + 1) // 2)
    return _with_hole(rng, half + half[: length // 2][::-1])


def _with_hole(rng: random.Random, word: Word) -> Word:
    hole = int(rng.random() * len(word))
    return (*word[:hole], HIDDEN, *word[hole + 1 :])


def two_numbers(operator: str) -> Draw:
    """Two numbers above zero with an operator between them; of at most two symbols, one number that is not all ones."""

    def draw(rng: random.Random, length: int) -> Word:
        if length <= 2:
            return _bits_with("0", rng, length)
        left = 1 + int(rng.random() * (length - 2))
        return (*above_zero(rng, left), operator, *above_zero(rng, length - 1 - left))

    return draw


def above_zero(rng: random.Random, length: int) -> Word:
    """A number above zero, uniform among those of ``length`` bits."""
    return _bits_with("1", rng, length)


def _bits_with(bit: str, rng: random.Random, length: int) -> Word:
    while bit not in (word := draw_word(rng, BITS, length)):
        pass
    return word


def one_hot(rng: random.Random, length: int) -> Word:
    """A 1 among zeros."""
    place = int(rng.random() * length)
    return _repeats(place, 1, length - place - 1)


def two_equal_repeats(rng: random.Random, length: int) -> Word:
    """0^l 1^m 0^r, two of whose repetitions are equal."""
    kind, equal = int(rng.random() * 3), 1 + int(rng.random() * (length // 2))
    rest = length - 2 * equal
    return _repeats(*((equal, equal, rest), (rest, equal, equal), (equal, rest, equal))[kind])


def _repeats(left: int, ones: int, right: int) -> Word:
    return ("0",) * left + ("1",) * ones + ("0",) * right


def two_blocks(rng: random.Random, length: int) -> Word:
    """a^k b^m with a and b of 0 and 1."""
    first = 1 + int(rng.random() * (length - 1))
    before, after = pick(rng, (BITS, BITS[::-1]))
    return (before,) * first + (after,) * (length - first)


def stack_and_actions(rng: random.Random, length: int) -> Word:
    """A stack of at least one bit, then actions."""
    return _stack_and(ACTIONS, rng, length, 1 + int(rng.random() * max(1, length - 1)))


def stack_and_hidden_action(rng: random.Random, length: int) -> Word:
    """A stack, actions, one of which is hidden, a delimiter and the hidden one; below four symbols, none is hidden."""
    actions = (POP, "push1")
    if length < 4:
        return _stack_and(actions, rng, length, 1 + int(rng.random() * max(1, length - 1)))
    height = 1 + int(rng.random() * (length - 3))
    word = _stack_and(actions, rng, length - 2, height)
    place = height + int(rng.random() * (length - 2 - height))
    return (*word[:place], HIDDEN, *word[place + 1 :], DELIMITER, word[place])


def _stack_and(actions: Word, rng: random.Random, length: int, height: int) -> Word:
    return draw_word(rng, BITS, height) + draw_word(rng, actions, length - height)


def unbalanced(rng: random.Random, length: int) -> Word:
    """Brackets of which at least one is open at the end, in phases of opening and closing brackets."""
    word: list[str] = []
    missing: list[str] = []
    opening = True
    for place in range(length):
        opening = opening if rng.random() < CONTINUED else not opening
        if len(missing) <= (place == length - 1):
            opening = True
        if opening:
            word.append(pick(rng, tuple(BRACKETS)))
            missing.append(BRACKETS[word[-1]])
        else:
            word.append(missing.pop())
    return tuple(word)
