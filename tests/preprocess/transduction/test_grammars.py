"""Tasks on strings of a grammar: golden counts and examples, and independent checks of the targets."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from fairseq_stack_preprocess.text.notation import parse_grammar
from fairseq_stack_preprocess.transduction.grammars import (
    AGREEMENT_TASK,
    FORMULA_TASK,
    PARENTHESIS_TASK,
)
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


def test_closing_brackets_that_follow_at_once() -> None:
    """43.8 % of the opening brackets in the paper's training data are closed at once."""
    source, rng = PARENTHESIS_TASK.strings(6), random.Random(0)
    words = ["".join(source.draw(rng).input) for _ in range(500)]
    opening = sum(word.count("(") + word.count("[") for word in words)
    assert sum(word.count("()") + word.count("[]") for word in words) / opening == pytest.approx(0.438, abs=0.025)
