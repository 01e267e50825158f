"""Tasks of Delétang et al. (2023): every answer by an independent evaluator."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack_preprocess.transduction.chomsky import (
    modular_arithmetic,
    solve_equation,
    stack_manipulation,
)
from fairseq_stack_preprocess.transduction.pairs import Source
from fairseq_stack_preprocess.transduction.strings import Lengths

seeds = st.integers(0, 10**6)
greatest = st.integers(3, 60)


def value(expression: str) -> int:
    """The value modulo 5, by Python's own arithmetic."""
    assert set(expression) <= set("01234+-*()")
    return int(eval(expression)) % 5


def question_and_answer(source: Source, seed: int) -> tuple[str, str]:
    """What stands before the blank of an input of one answer, and the answer."""
    pair = source.draw(random.Random(seed))
    *question, blank = pair.input
    assert blank == "#"
    assert pair.target == ("#",) * len(question) + pair.target[-1:]
    assert {*pair.input, *pair.target} <= set(source.alphabet.symbols)
    assert pair.target[-1] in source.alphabet.scored
    assert len(pair.input) <= source.longest
    return "".join(question), pair.target[-1]


@given(greatest, seeds)
def test_modular_arithmetic(greatest: int, seed: int) -> None:
    expression, answer = question_and_answer(modular_arithmetic(Lengths(1, greatest)), seed)
    assert 1 <= len(expression) <= greatest
    assert value(expression) == int(answer)


@given(greatest, seeds)
def test_solve_equation(greatest: int, seed: int) -> None:
    """The answer is the only solution."""
    equation, answer = question_and_answer(solve_equation(Lengths(3, greatest)), seed)
    assert 3 <= len(equation) <= greatest
    left, right = equation.split("=")
    assert left.count("x") == 1
    assert [digit for digit in "01234" if value(left.replace("x", digit)) == int(right)] == [answer]


@given(st.integers(1, 60), seeds)
def test_stack_manipulation(length: int, seed: int) -> None:
    source = stack_manipulation(Lengths(length, length))
    pair = source.draw(random.Random(seed))
    stack: list[int] = []
    bottom = True
    for word in pair.input[:length]:
        bottom = bottom and word in "01"
        if bottom:
            stack.append(int(word))
        elif word == "pop":
            del stack[-1:]
        else:
            stack.append({"push0": 0, "push1": 1}[word])
    answer = [*(str(bit) for bit in reversed(stack)), "end"]
    blanks = ["#"] * (length + 1 - len(answer))
    assert pair.input[length:] == ("#",) * (length + 1)
    assert list(pair.target) == ["#"] * length + answer + blanks
    assert len(pair.input) == source.longest
