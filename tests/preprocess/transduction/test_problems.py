"""Further tasks of Delétang et al. (2023), and the tasks of DeltaStack: golden pairs and properties."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from fairseq_stack_preprocess.transduction.answers import HIDDEN, arithmetic, arithmetic_from_left
from fairseq_stack_preprocess.transduction.chomsky import (
    ACTIONS,
    BITS,
    BLANK,
    DIGITS,
    END,
    draw_expression,
    manipulated,
)
from fairseq_stack_preprocess.transduction.pairs import Word
from fairseq_stack_preprocess.transduction.problems import DELETANG, DELTASTACK, FIRST_VERSION, Problem
from fairseq_stack_preprocess.transduction.strings import Lengths
from tests.helpers import each_golden_file

PROBLEMS = {problem.name: problem for problem in (*DELETANG, *FIRST_VERSION, *DELTASTACK)}


def solved(equation: Word) -> Word:
    """The only digit for x with which the sides of an equation are equal."""
    *left, _, right = equation
    return tuple(digit for digit in DIGITS if arithmetic(tuple(digit if a == "x" else a for a in left)) == (right,))


def stack_with_end(word: Word) -> Word:
    height = sum(symbol in BITS for symbol in word)
    return (*manipulated(word[:height], word[height:])[::-1], END)


EARLIER: dict[str, tuple[Word, Word, Callable[[Word], Word]]] = {
    "reverse_string": (BITS, BITS, lambda word: word[::-1]),
    "stack_manipulation": ((*BITS, *ACTIONS), (*BITS, END), stack_with_end),
    "modular_arithmetic_brackets": ((*DIGITS, "+", "-", "*", "(", ")"), DIGITS, arithmetic),
    "solve_equation": ((*DIGITS, "+", "-", "(", ")", "x", "="), DIGITS, solved),
}
"""Symbols of questions, symbols of answers, and the answer, of the tasks that are no problems."""

NAMES = {
    "modular_arithmetic": "modular_arithmetic_simple",
    "nondeterministic_stack_manipulation": "nondeterministic_stack_manipulation_as_coded",
    "nondeterministic_stack_manipulation_intended": "nondeterministic_stack_manipulation",
}
"""The names here of tasks of the golden file."""


def padded(answer: Word, length: int) -> Word:
    """The answer with zeros where nothing is scored, as the authors have it."""
    zeros = tuple("0" if symbol == BLANK else symbol for symbol in answer)
    return zeros + ("0",) * (length - len(answer))


@each_golden_file("chomsky_tasks.jsonl")
def test_pairs_of_the_authors_of_the_hierarchy(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        name = NAMES.get(line["task"], line["task"])
        if name in EARLIER:
            letters, scored, answer = EARLIER[name]
        else:
            letters, scored, answer = PROBLEMS[name].letters, PROBLEMS[name].scored, PROBLEMS[name].answer
        actual = answer(tuple(letters[code] for code in line["input"]))
        if actual != (HIDDEN,):
            assert padded(actual, len(line["output"])) == tuple(scored[code] for code in line["output"]), line
    assert len(lines) >= 200


@each_golden_file("deltastack_tasks.jsonl")
def test_pairs_of_deltastack(path: Path) -> None:
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        problem = PROBLEMS[f"deltastack_{line['task']}"]
        question, answer = (tuple(problem.letters[code - 1] for code in line[side]) for side in ("input", "output"))
        assert problem.answer(question) == answer, line


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_pairs_are_questions_and_their_answers(problem: Problem) -> None:
    for length in (problem.least_length, 2, 3, 4, 5, 40, 41, 500):
        source = problem.source(Lengths(length, length))
        for seed in range(5):
            pair = source.draw(random.Random(seed))
            assert source.draw(random.Random(seed)) == pair
            question = tuple(symbol for symbol in pair.input if symbol != BLANK)
            assert set(question) <= set(problem.letters)
            assert pair.input == question + (BLANK,) * (len(pair.input) - len(question))
            assert len(pair.input) <= source.longest
            start = len(question) - problem.at_last
            answer, expected = pair.target[start:], problem.answer(question)
            assert pair.target[:start] == (BLANK,) * start
            assert set(answer) - {BLANK} <= set(problem.scored)
            if expected != (HIDDEN,):
                assert answer == expected + (BLANK,) * (len(answer) - len(expected))
            assert END in expected or len(answer) == len(expected)


@pytest.mark.parametrize(
    ("name", "length", "expected"),
    [
        ("modular_arithmetic_simple", 40, 40),
        ("duplicate_string", 40, 120),
        ("compute_sqrt", 41, 62),
        ("binary_addition", 40, 81),
        ("deltastack_mod_arith_no_brack", 59, 60),
        ("deltastack_dyck", 60, 119),
    ],
)
def test_longest_inputs(name: str, length: int, expected: int) -> None:
    assert PROBLEMS[name].source(Lengths(length, length)).longest == expected


def test_arithmetic_is_pythons() -> None:
    rng = random.Random(0)
    for length in [*range(1, 60)] * 3:
        expression, value = draw_expression(rng, length, "+-*")
        assert arithmetic(expression) == (str(value),)
        assert value == eval("".join(expression)) % 5
    assert arithmetic(tuple("3--2*4+1")) == ("2",)
    assert arithmetic_from_left(tuple("3-2*4+1")) == ("0",)


@pytest.mark.parametrize(
    ("name", "question", "answer"),
    [
        ("binary_addition", "0 1", "0 1 end"),
        ("binary_multiplication", "1 0", "0 end"),
        ("equal_repeats", "0 0", "2"),
        ("equal_repeats", "0 0 1 1 0 0", "0"),
        ("nondeterministic_stack_manipulation", "0 1 ? push1 ; pop", "1 0 end"),
        ("nondeterministic_stack_manipulation", "0 1 ? pop ; pop", "0 end"),
        ("nondeterministic_stack_manipulation_as_coded", "0 1 ? push1 ; pop", "1 0 1 0 end"),
        ("divide_by_two", "0 0 0 1 0", "# 0 1 # #"),
        ("deltastack_stack_manipulation", "0 pop pop act", "empty"),
    ],
)
def test_answers_by_hand(name: str, question: str, answer: str) -> None:
    assert PROBLEMS[name].answer(tuple(question.split())) == tuple(answer.split())
