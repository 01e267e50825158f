"""The problems of Delétang et al. (2023) beyond those of :mod:`.chomsky`, and of DeltaStack (2026).

A problem is a way to draw questions of a given length, and the answer to each of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from . import answers, questions
from .answers import BRACKETS, DELIMITER, EMPTY, HIDDEN, LEFT, PADDING, RIGHT, STAY
from .chomsky import BITS, BLANK, DIGITS, END, POP, PUSHES, draw_expression
from .pairs import Alphabet, Pair, Source, Word, after_reading
from .strings import Lengths, draw_word

OPERATORS = ("+", "-", "*")
SEPARATOR, EQUALS, ACT = "|", "=", "act"


@dataclass(frozen=True)
class Problem:
    """A problem.

    Attributes:
        name: the name of its task.
        form: what its pairs look like.
        letters: the symbols of questions, in the order of the authors' codes.
        draw: draws a question of a given length.
        scored: the symbols of answers.
        answer: the answer to a question.
        room: the maximum length of the answer to a question of a given length.
        length: the length of the question for a length that is drawn.
        least_length: lengths cannot be less.
        longest_of: how many lengths are drawn, of which the greatest counts.
        at_last: whether the answer stands at the last symbol of the question, instead of after it.
    """

    name: str
    form: str
    letters: Word
    draw: questions.Draw
    scored: Word
    answer: Callable[[Word], Word]
    room: Callable[[int], int] = lambda n: 1
    length: Callable[[int], int] = lambda n: n
    least_length: int = 1
    longest_of: int = 1
    at_last: bool = False

    def source(self, lengths: Lengths) -> Source:
        """What its pairs are drawn from."""
        alphabet = Alphabet((*dict.fromkeys(self.letters + self.scored), BLANK), BLANK, self.scored)
        longest = self.length(lengths.greatest)

        def draw(rng: random.Random) -> Pair:
            length = max(lengths.draw(rng) for _ in range(self.longest_of))
            question = self.draw(rng, self.length(length))
            answer = self.answer(question)
            if answer == (HIDDEN,):  # nothing in the question tells
                answer = draw_word(rng, self.scored, 1)
            if self.at_last:
                return Pair(question, (BLANK,) * (len(question) - 1) + answer)
            return after_reading(question, answer, BLANK, self.room(len(question)) if END in answer else None)

        return Source(alphabet, longest + (0 if self.at_last else self.room(longest)), draw)


def _with_brackets(rng: random.Random, length: int) -> Word:
    return draw_expression(rng, length, "+-*")[0]


_STEPS = (LEFT, STAY, RIGHT)
_UNIFORM_BITS, _UNIFORM_STEPS, _UNIFORM_DIGITS = (
    (letters, questions.uniform(letters)) for letters in (BITS, _STEPS, DIGITS)
)
_SEPARATED_BITS = (*BITS, SEPARATOR), questions.ending_in(SEPARATOR, questions.uniform(BITS))
_HIDDEN_ACTION = (*BITS, POP, "push1", HIDDEN, DELIMITER), questions.stack_and_hidden_action

DELETANG = (
    Problem("even_pairs", "bits -> whether first and last differ", *_UNIFORM_BITS, BITS, answers.even_pairs),
    Problem(
        "modular_arithmetic_simple",
        "digits and operators -> value modulo 5",
        (*DIGITS, *OPERATORS),
        questions.expression,
        DIGITS,
        answers.arithmetic,
        length=lambda n: n - 1 + n % 2,
    ),
    Problem("parity_check", "bits -> number of ones modulo 2", *_UNIFORM_BITS, BITS, answers.parity),
    Problem("cycle_navigation", "steps -> place modulo 5", *_UNIFORM_STEPS, DIGITS, answers.cycle_navigation),
    Problem(
        "missing_duplicate_string",
        "w w with a hidden bit -> the bit",
        (*BITS, HIDDEN, PADDING),
        questions.duplicate_with_hole,
        BITS,
        answers.missing_duplicate,
    ),
    Problem("duplicate_string", "w -> w w", *_UNIFORM_BITS, BITS, lambda word: word * 2, lambda n: 2 * n),
    Problem("odds_first", "w -> even positions, odd ones", *_UNIFORM_BITS, BITS, answers.odds_first, lambda n: n),
    Problem(
        "binary_addition",
        "a + b, little-endian -> sum, end",
        (*BITS, "+"),
        questions.two_numbers("+"),
        (*BITS, END),
        answers.binary_addition,
        lambda n: n + 1,
    ),
    Problem(
        "binary_multiplication",
        "a * b, little-endian -> product, end",
        (*BITS, "*"),
        questions.two_numbers("*"),
        (*BITS, END),
        answers.binary_multiplication,
        lambda n: n,
    ),
    Problem(
        "compute_sqrt",
        "big-endian number -> its integer square root",
        BITS,
        questions.above_zero,
        BITS,
        answers.square_root,
        lambda n: (n + 1) // 2,
    ),
    Problem("bucket_sort", "digits -> sorted", *_UNIFORM_DIGITS, DIGITS, answers.in_order, lambda n: n),
)
"""What :mod:`.chomsky` does not have of the paper's 15 tasks."""

FIRST_VERSION = (
    Problem(
        "divide_by_two", "0^p 1 0^q -> 1 at p / 2", BITS, questions.one_hot, BITS, answers.divide_by_two, lambda n: n
    ),
    Problem(
        "equal_repeats",
        "0^l 1^m 0^r -> which two are equal",
        BITS,
        questions.two_equal_repeats,
        ("0", "1", "2"),
        answers.equal_repeats,
        least_length=2,
    ),
    Problem(
        "missing_palindrome",
        "palindrome with a hidden bit -> the bit",
        (*BITS, HIDDEN),
        questions.palindrome_with_hole,
        BITS,
        answers.missing_palindrome,
    ),
    Problem(
        "nondeterministic_stack_manipulation",
        "one action is given last",
        *_HIDDEN_ACTION,
        (*BITS, END),
        answers.nondeterministic_stack,
        lambda n: n + 1,
    ),
    Problem(
        "nondeterministic_stack_manipulation_as_coded",
        "the same, pop pushes 0",
        *_HIDDEN_ACTION,
        (*BITS, END),
        answers.nondeterministic_stack_as_coded,
        lambda n: n + 1,
    ),
    Problem("compare_occurrence", "bits -> whether ones >= zeros", *_UNIFORM_BITS, BITS, answers.more_ones),
    Problem(
        "interlocked_pairing",
        "a^k b^m -> a^k b^m b^k a^m",
        BITS,
        questions.two_blocks,
        BITS,
        answers.interlocked_pairing,
        lambda n: 2 * n,
        least_length=2,
    ),
)
"""Tasks that the first version of the code of Delétang et al. had."""

DELTASTACK = (
    Problem("deltastack_even_pairs", "at the last bit", *_UNIFORM_BITS, BITS, answers.even_pairs, at_last=True),
    Problem("deltastack_parity", "at the last bit", *_UNIFORM_BITS, BITS, answers.parity, at_last=True),
    Problem(
        "deltastack_cycle_nav", "at the last step", *_UNIFORM_STEPS, DIGITS, answers.cycle_navigation, at_last=True
    ),
    Problem(
        "deltastack_mod_arith_no_brack",
        "operators bind equally; at =",
        (*OPERATORS, EQUALS, *DIGITS),
        questions.ending_in(EQUALS, questions.expression),
        DIGITS,
        answers.without_last(answers.arithmetic_from_left),
        length=lambda n: n + n % 2,
        at_last=True,
    ),
    Problem(
        "deltastack_mod_arith_w_brack",
        "modular_arithmetic, at =",
        (*DIGITS, *OPERATORS, "(", ")", EQUALS),
        questions.ending_in(EQUALS, _with_brackets),
        DIGITS,
        answers.without_last(answers.arithmetic),
        least_length=2,
        at_last=True,
    ),
    Problem(
        "deltastack_reverse_string",
        "w, | -> w reversed",
        *_SEPARATED_BITS,
        BITS,
        answers.without_last(lambda word: word[::-1]),
        lambda n: n - 1,
        least_length=2,
    ),
    Problem(
        "deltastack_duplicate_string",
        "w, | -> w",
        *_SEPARATED_BITS,
        BITS,
        answers.without_last(lambda word: word),
        lambda n: n - 1,
        least_length=2,
    ),
    Problem(
        "deltastack_stack_manipulation",
        "stack, actions -> stack",
        (*BITS, *PUSHES, POP, EMPTY, ACT),
        questions.ending_in(ACT, questions.stack_and_actions),
        (*BITS, EMPTY),
        answers.without_last(answers.stack_without_end),
        lambda n: n - 1,
        least_length=2,
    ),
    Problem(
        "deltastack_dyck",
        "open brackets, | -> what closes them",
        (SEPARATOR, "(", ")", "[", "]"),
        questions.ending_in(SEPARATOR, questions.unbalanced),
        tuple(BRACKETS.values()),
        answers.without_last(answers.closing_brackets),
        lambda n: n - 1,
        least_length=2,
        longest_of=2,
    ),
)
"""DeltaStack's nine tasks. A length counts the last symbol of the question, e.g. ``=``."""
