"""The answers of problems: functions from the symbols of a question to those of its answer.

The tasks are those of Delétang et al. (2023), of the first version of their code, and of DeltaStack (2026). Where the
paper and the code of Delétang et al. differ, these functions follow the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .chomsky import BITS, BLANK, END, MODULUS, POP, PUSHES, manipulated
from .pairs import Word

LEFT, STAY, RIGHT = "left", "stay", "right"
HIDDEN, PADDING, DELIMITER, EMPTY = "?", "pad", ";", "empty"
BRACKETS = {"(": ")", "[": "]"}


def even_pairs(word: Word) -> Word:
    """Whether the number of 01 and 10 is odd: whether the first bit and the last one differ."""
    return (str(int(word[0] != word[-1])),)


def parity(word: Word) -> Word:
    """The number of ones modulo 2."""
    return (str(word.count("1") % 2),)


def cycle_navigation(word: Word) -> Word:
    """The place in a cycle of five."""
    return (str((word.count(RIGHT) - word.count(LEFT)) % MODULUS),)


def arithmetic(word: Word) -> Word:
    """The value modulo 5 of an expression, which may have brackets; ``*`` binds more strongly than ``+`` and ``-``."""
    stack: list[str] = ["("]
    for symbol in (*word, ")"):
        if symbol == ")":
            start = len(stack) - stack[::-1].index("(")
            inner, stack = stack[start:], stack[: start - 1]
            symbol = _sum_of_products(inner)
        stack.append(symbol)
    return tuple(stack)


def _sum_of_products(word: list[str]) -> str:
    """The value of an expression without brackets, in which a digit may have a sign."""
    terms, multiplied, sign = [0], False, 1
    for symbol in word:
        if symbol == "*":
            multiplied = True
        elif symbol == "-":
            sign = -sign
        elif symbol != "+":
            factor = terms.pop() if multiplied else 1
            terms.append(factor * sign * int(symbol))
            multiplied, sign = False, 1
    return str(sum(terms) % MODULUS)


def arithmetic_from_left(word: Word) -> Word:
    """The value modulo 5 of an expression without brackets, whose operators bind equally."""
    value = int(word[0])
    for operator, digit in zip(word[1::2], map(int, word[2::2]), strict=True):
        value = {"+": value + digit, "-": value - digit, "*": value * digit}[operator] % MODULUS
    return (str(value),)


def missing_duplicate(word: Word) -> Word:
    """The hidden bit of w w; a single bit is its own answer."""
    if HIDDEN not in word:
        return word
    half, hidden = len(word) // 2, word.index(HIDDEN)
    return (word[(hidden + half) % (2 * half)],)


def missing_palindrome(word: Word) -> Word:
    """The hidden bit of a palindrome; HIDDEN if it is the middle."""
    return (word[-1 - word.index(HIDDEN)],)


def odds_first(word: Word) -> Word:
    """The second symbol, the fourth, ..., then the first, the third, ..."""
    return word[1::2] + word[::2]


def in_order(word: Word) -> Word:
    """The symbols sorted."""
    return tuple(sorted(word))


def binary_addition(word: Word) -> Word:
    """The sum of little-endian numbers."""
    left, right = _numbers(word, "+")
    return (*f"{left + right:b}"[::-1], END)


def binary_multiplication(word: Word) -> Word:
    """The product of little-endian numbers; without ``*``, zeros in place of all bits but the last."""
    if "*" not in word:
        return (*"0" * (len(word) - 1), END)
    return (*f"{math.prod(_numbers(word, '*')):b}"[::-1], END)


def _numbers(word: Word, operator: str) -> tuple[int, int]:
    """The numbers before and after an operator; zero for a number that is not there."""
    left, _, right = "".join(word).partition(operator)
    return int(left[::-1], 2), int(right[::-1] or "0", 2)


def square_root(word: Word) -> Word:
    """The integer square root of a big-endian number, big-endian, with leading zeros."""
    return tuple(f"{math.isqrt(int(''.join(word), 2)):0{(len(word) + 1) // 2}b}")


def divide_by_two(word: Word) -> Word:
    """A 1 at half of the position of the input's 1, rounded up, and a 0 before it; the rest is not scored."""
    half = (word.index("1") + 1) // 2
    answer = (*("0",) * min(half, 1), "1")
    return (BLANK,) * (half + 1 - len(answer)) + answer + (BLANK,) * (len(word) - half - 1)


def equal_repeats(word: Word) -> Word:
    """Which repetitions in 0^l 1^m 0^r are equal: 0 for l = m, 1 for m = r, 2 for l = r."""
    if "1" not in word:
        return ("2",)
    left, ones = word.index("1"), word.count("1")
    return ("0" if left == ones else "1" if ones == len(word) - left - ones else "2",)


def more_ones(word: Word) -> Word:
    """Whether there are at least as many ones as zeros."""
    return (str(int(2 * word.count("1") >= len(word))),)


def interlocked_pairing(word: Word) -> Word:
    """The input, then the input with 0 and 1 exchanged."""
    return word + tuple("10"[int(bit)] for bit in word)


def nondeterministic_stack(word: Word) -> Word:
    """The stack from the top after actions, one of which may be hidden and given at the end.

    A pop leaves the last element.
    """
    stack: list[str] = []
    for symbol in _revealed(word):
        if symbol != POP:
            stack.append(PUSHES.get(symbol, symbol))
        elif len(stack) > 1:
            stack.pop()
    return (*stack[::-1], END)


def nondeterministic_stack_as_coded(word: Word) -> Word:
    """The same as in the authors' code: if an action is hidden, ``pop`` pushes 0."""
    if DELIMITER in word:
        word = tuple("0" if symbol == POP else symbol for symbol in _revealed(word))
    return nondeterministic_stack(word)


def _revealed(word: Word) -> Word:
    if DELIMITER not in word:
        return word
    return tuple(word[-1] if symbol == HIDDEN else symbol for symbol in word[:-2])


def stack_without_end(word: Word) -> Word:
    """The stack from the top after actions; EMPTY if there is nothing on it."""
    height = sum(symbol in BITS for symbol in word)
    return manipulated(word[:height], word[height:])[::-1] or (EMPTY,)


def closing_brackets(word: Word) -> Word:
    """The brackets that complete a prefix of a balanced string."""
    missing: list[str] = []
    for symbol in word:
        if symbol in BRACKETS:
            missing.append(BRACKETS[symbol])
        else:
            missing.pop()
    return tuple(missing[::-1])


def without_last(answer: Callable[[Word], Word]) -> Callable[[Word], Word]:
    """The same, to a question that ends in a symbol that says that it ends."""
    return lambda word: answer(word[:-1])
