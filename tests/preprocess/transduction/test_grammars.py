"""Tasks on strings of a grammar: golden counts and examples, and independent checks of the targets."""

from __future__ import annotations

import json
import operator
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.text.splits import stream
from fairseq_stack_preprocess.transduction.grammars import (
    AGREEMENT_TASK,
    FORMULA_TASK,
    PARENTHESIS_TASK,
    GrammarTask,
)
from fairseq_stack_preprocess.transduction.pairs import Pair
from tests.helpers import each_golden_file

from .enumeration import strings_of_depth

GRAMMAR_TASKS = {"parenthesis": PARENTHESIS_TASK, "formula": FORMULA_TASK, "agreement": AGREEMENT_TASK}


@each_golden_file("neural_stacks/languages.json")
def test_golden_counts_by_depth_and_length(path: Path) -> None:
    languages = json.loads(path.read_text(encoding="utf-8"))
    assert languages.keys() == GRAMMAR_TASKS.keys()
    for name, golden in languages.items():
        task = GRAMMAR_TASKS[name]
        assert task.derivations.count(golden["test_depth"]) == int(golden["test_derivations"])
        for depth, counts in golden["by_depth"].items():
            strings = strings_of_depth(parse_grammar(task.grammar), int(depth))
            by_length = Counter(len(task.pair(string).input) for string in strings)
            assert {str(length): number for length, number in sorted(by_length.items())} == counts["by_length"]
            assert len(strings) == counts["strings"]
            assert task.derivations.count(int(depth)) == counts["derivations"]
            assert task.longest(int(depth)) == max(by_length, default=0)
            assert task.ambiguous or strings.total() == len(strings)


@pytest.mark.parametrize(
    ("name", "depth", "longest"), [("parenthesis", 12, 110), ("formula", 7, 31), ("agreement", 32, 51)]
)
def test_longest_inputs_of_the_test_sets(name: str, depth: int, longest: int) -> None:
    assert GRAMMAR_TASKS[name].longest(depth) == longest


def pairs(name: str, depth: int, number: int = 200) -> Iterator[Pair]:
    task, rng = GRAMMAR_TASKS[name], stream(0, "test")
    for source in (task.strings(depth), task.trees(depth)):
        for _ in range(number):
            pair = source.draw(rng)
            assert len(pair.input) <= source.longest
            assert set(pair.input) | set(pair.target) <= set(source.alphabet.symbols)
            yield pair


@pytest.mark.parametrize("name", ["parenthesis", "agreement"])
def test_the_target_is_the_next_symbol(name: str) -> None:
    for pair in pairs(name, 6):
        assert pair.target == (*pair.input[1:], "#")


def test_parentheses_are_balanced_and_scored_symbols_follow_from_the_stack() -> None:
    closers = {"(": ")", "[": "]"}
    assert PARENTHESIS_TASK.alphabet.scored == tuple(closers.values())
    for pair in pairs("parenthesis", 7):
        stack: list[str] = []
        for symbol, following in zip(pair.input, pair.target, strict=True):
            if symbol in closers:
                stack.append(closers[symbol])
            else:
                assert symbol == stack.pop()
            if following in PARENTHESIS_TASK.alphabet.scored:
                assert following == stack[-1]
        assert stack == []


def values_of_prefixes(formula: Sequence[str]) -> list[bool]:
    """The value of the longest formula in reverse Polish notation that ends at each symbol."""
    operators = {"and": operator.and_, "or": operator.or_}
    stack: list[bool] = []
    values = []
    for symbol in formula:
        if symbol in operators:
            right, left = stack.pop(), stack.pop()
            stack.append(operators[symbol](left, right))
        else:
            stack.append({"T": True, "F": False}[symbol])
        values.append(stack[-1])
    assert len(stack) == 1
    return values


def test_values_of_formulas() -> None:
    for pair in pairs("formula", 6):
        assert [symbol == "1" for symbol in pair.target] == values_of_prefixes(pair.input)
        assert set(pair.target) <= set(FORMULA_TASK.alphabet.scored)


def agrees(words: Sequence[str]) -> bool:
    """Whether each auxiliary agrees with the nearest noun before it that still waits for a verb.

    A noun phrase ends where a noun is followed by neither a preposition nor a relative clause. A clause without a
    subject of its own begins with the auxiliary of the noun that it belongs to.
    """
    numbers = {"Nsing": "Auxsing", "Nplur": "Auxplur"}
    waiting: list[str] = []
    before = ""
    for position, word in enumerate(words):
        if word in numbers:
            after_preposition = position >= 2 and words[position - 2] == "Prep"
            object_of_verb = position >= 2 and words[position - 2] == "Vtrans"
            if not after_preposition and not object_of_verb:
                waiting.append(numbers[word])
            before = numbers[word]
        elif word in numbers.values():
            expected = before if words[position - 1] == "Rel" else waiting.pop()
            if word != expected:
                return False
    return waiting == []


def test_auxiliaries_agree_with_their_subjects() -> None:
    assert agrees(["Det", "Nsing", "Prep", "Det", "Nplur", "Auxsing"])
    assert not agrees(["Det", "Nsing", "Prep", "Det", "Nplur", "Auxplur"])
    assert not agrees(["Det", "Nsing", "Rel", "Auxplur", "Vintrans", "Auxsing"])
    numbers = Counter[str]()
    for pair in pairs("agreement", 16):
        assert agrees(pair.input), " ".join(pair.input)
        numbers.update(pair.input)
    assert numbers["Auxsing"] > 100 < numbers["Auxplur"]


def test_closing_brackets_that_follow_at_once() -> None:
    """43.8 % of the opening brackets in the paper's training data are closed at once."""
    source, rng = PARENTHESIS_TASK.strings(6), random.Random(0)
    words = ["".join(source.draw(rng).input) for _ in range(500)]
    opening = sum(word.count("(") + word.count("[") for word in words)
    assert sum(word.count("()") + word.count("[]") for word in words) / opening == pytest.approx(0.438, abs=0.025)


@pytest.mark.parametrize("task", GRAMMAR_TASKS.values(), ids=GRAMMAR_TASKS)
def test_symbols_of_the_alphabet(task: GrammarTask) -> None:
    terminals = set(parse_grammar(task.grammar).terminals)
    assert set(task.alphabet.symbols) == terminals | {task.alphabet.blank}
    assert len(set(task.alphabet.symbols)) == len(task.alphabet.symbols)
