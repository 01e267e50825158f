"""Tasks of Delétang et al. (2023), "Neural Networks and the Chomsky Hierarchy", that one stack can solve.

The others are in :mod:`.problems`. The input is a string and then blanks; the answer stands where the blanks are.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from ..text.splits import pick
from .pairs import Alphabet, Pair, Source, Word, after_reading
from .strings import Lengths, draw_word, numbered_symbols

MODULUS = 5
BLANK = "#"
DIGITS = numbered_symbols(MODULUS)
BITS = numbered_symbols(2)
POP, END = "pop", "end"
PUSHES = {"push0": "0", "push1": "1"}
ACTIONS = (POP, *PUSHES)


def stack_manipulation(lengths: Lengths) -> Source:
    """A stack from bottom to top, actions -> the resulting stack from top to bottom, then ``end``."""
    alphabet = Alphabet((*BITS, *ACTIONS, END, BLANK), BLANK, (*BITS, END))

    def draw(rng: random.Random) -> Pair:
        length = lengths.draw(rng)
        height = 1 + int(rng.random() * max(1, length - 1))
        stack, actions = draw_word(rng, BITS, height), draw_word(rng, ACTIONS, length - height)
        answer = (*manipulated(stack, actions)[::-1], END)
        return after_reading(stack + actions, answer, BLANK, room=length + 1)

    return Source(alphabet, 2 * lengths.greatest + 1, draw)


def manipulated(stack: Word, actions: Sequence[str]) -> Word:
    """The stack after the actions; an empty stack stays empty when it is popped."""
    changed = list(stack)
    for action in actions:
        if action != POP:
            changed.append(PUSHES[action])
        elif changed:
            changed.pop()
    return tuple(changed)


def modular_arithmetic(lengths: Lengths) -> Source:
    """An expression with brackets -> its value modulo 5."""
    alphabet = Alphabet((*DIGITS, "+", "-", "*", "(", ")", BLANK), BLANK, DIGITS)

    def draw(rng: random.Random) -> Pair:
        expression, value = draw_expression(rng, lengths.draw(rng), "+-*")
        return after_reading(expression, (str(value),), BLANK)

    return Source(alphabet, lengths.greatest + 1, draw)


def solve_equation(lengths: Lengths, *, from_index: bool = False) -> Source:
    """An equation, a digit of whose left side is replaced by x -> that digit.

    There is no multiplication: so x has one solution modulo 5. The digit is uniform among the digits. With
    ``from_index``, it is the next one from a place that is uniform among the symbols, as in the authors' code.
    """
    alphabet = Alphabet((*DIGITS, "+", "-", "(", ")", "x", "=", BLANK), BLANK, DIGITS)

    def draw(rng: random.Random) -> Pair:
        expression, value = draw_expression(rng, lengths.draw(rng) - 2, "+-")
        places = [i for i, symbol in enumerate(expression) if symbol in DIGITS]
        drawn = int(rng.random() * len(expression if from_index else places))
        place = min(places, key=lambda i: (i - drawn) % len(expression)) if from_index else places[drawn]
        equation = (*expression[:place], "x", *expression[place + 1 :], "=", str(value))
        return after_reading(equation, (expression[place],), BLANK)

    return Source(alphabet, lengths.greatest + 1, draw)


def draw_expression(rng: random.Random, length: int, operators: str) -> tuple[Word, int]:
    """A random expression of ``length`` symbols, and its value modulo 5.

    An expression of at most four symbols is d, -d, (d) or (-d) with a digit d. A longer one is (left operator right);
    the length of its left side is uniform.
    """
    if length < 5:
        digit = int(rng.random() * MODULUS)
        negative = length in (2, 4)
        inner = ("-", str(digit)) if negative else (str(digit),)
        return ("(", *inner, ")") if length > 2 else inner, (-digit if negative else digit) % MODULUS
    left_length = 1 + int(rng.random() * (length - 4))
    left, left_value = draw_expression(rng, left_length, operators)
    right, right_value = draw_expression(rng, length - 3 - left_length, operators)
    operator = pick(rng, operators)
    values = {"+": left_value + right_value, "-": left_value - right_value, "*": left_value * right_value}
    return ("(", *left, operator, *right, ")"), values[operator] % MODULUS
