"""Tasks on strings of given lengths: properties of every pair, golden examples, and distributions."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack_preprocess.transduction import strings
from fairseq_stack_preprocess.transduction.grammars import AGREEMENT_TASK, FORMULA_TASK, PARENTHESIS_TASK
from fairseq_stack_preprocess.transduction.pairs import Alphabet, Pair
from fairseq_stack_preprocess.transduction.strings import Lengths
from fairseq_stack_preprocess.transduction.tasks import TASKS
from tests.helpers import each_golden_file

from .test_derivations import deviation

seeds = st.integers(0, 10**6)
lengths = st.builds(
    lambda least, more, spread: Lengths(least, least + more, least + more / 2, spread),
    st.integers(1, 10),
    st.integers(0, 10),
    st.none() | st.floats(0, 5),
)


@given(lengths, st.integers(2, 12), seeds)
def test_reversal(lengths: Lengths, symbols: int, seed: int) -> None:
    source = strings.reversal(lengths, symbols)
    pair, blank = source.draw(random.Random(seed)), str(symbols)
    n = len(pair.input) // 2
    assert lengths.least <= n <= lengths.greatest == source.longest // 2
    assert blank not in pair.input[:n]
    assert pair.input[n:] == pair.target[:n] == (blank,) * n
    assert pair.target[n:][::-1] == pair.input[:n]


@given(lengths, st.integers(2, 12), seeds)
def test_copy(lengths: Lengths, symbols: int, seed: int) -> None:
    pair = strings.copy(lengths, symbols).draw(random.Random(seed))
    assert pair.target == pair.input
    assert str(symbols) not in pair.input


@given(lengths, st.integers(2, 12), seeds)
def test_reverse_deletion(lengths: Lengths, symbols: int, seed: int) -> None:
    source = strings.reverse_deletion(lengths, symbols)
    pair = source.draw(random.Random(seed))
    n = len(pair.input) // 2
    answer = [symbol for symbol in pair.target if symbol != str(symbols)]
    assert answer[::-1] == [symbol for symbol in pair.input[:n] if int(symbol) < symbols // 2]
    assert list(pair.target[n : n + len(answer)]) == answer
    assert set(answer) <= set(source.alphabet.scored)


@given(lengths, seeds)
def test_counting(lengths: Lengths, seed: int) -> None:
    pair = strings.counting(lengths).draw(random.Random(seed))
    text = "".join(pair.input)
    assert text == "a" * text.count("a") + "b" * text.count("a")
    assert "".join(pair.target) == text[1:] + "#"


@each_golden_file("neural_stacks/examples.jsonl")
def test_golden_examples(path: Path) -> None:
    """Each golden pair follows from its input, and the scored symbols give its mask."""
    examples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {example["task"] for example in examples} == set(list(TASKS)[:6])
    for example in examples:
        inputs = tuple(example["input"].split())
        alphabet, pair = remade(example["task"], inputs)
        assert (" ".join(pair.input), " ".join(pair.target)) == (example["input"], example["target"])
        assert [int(symbol in alphabet.scored) for symbol in pair.target] == example["mask"]


def remade(task: str, inputs: tuple[str, ...]) -> tuple[Alphabet, Pair]:
    """The alphabet of a task, and the pair of an input, made from random numbers that give this input."""
    if task == "formula":
        values = {"T": "1", "F": "0"}
        stack: list[str] = []
        string: list[str] = []
        for symbol in inputs:
            if symbol in values:
                stack.append(values[symbol])
            else:
                stack.append((min if symbol == "and" else max)(stack.pop(), stack.pop()))
            string += [symbol, stack[-1]]
        assert FORMULA_TASK.derivations.ambiguity(tuple(string), 7) == 1
        return FORMULA_TASK.alphabet, FORMULA_TASK.pair(tuple(string))
    if task in ("parenthesis", "agreement"):
        of_grammar = PARENTHESIS_TASK if task == "parenthesis" else AGREEMENT_TASK
        depth = {"parenthesis": 12, "agreement": 32}[task]
        assert of_grammar.derivations.ambiguity(inputs, depth) > 0
        return of_grammar.alphabet, of_grammar.pair(inputs)
    word = [int(symbol) for symbol in inputs if symbol != "2"]
    only = Lengths(len(word), len(word))
    sources = {
        "reversal": lambda: strings.reversal(only, 2),
        "xor": lambda: strings.xor(only),
        "delayed_xor": lambda: strings.delayed_xor(only),
    }
    source = sources[task]()
    return source.alphabet, source.draw(Replayed(word))


class Replayed(random.Random):
    """Random numbers that choose given bits."""

    def __init__(self, bits: list[int]) -> None:
        super().__init__()
        self.bits = iter(bits)

    def random(self) -> float:
        return next(self.bits) / 2


def test_lengths_of_reversal_as_in_the_paper() -> None:
    """Mean 9.40 and 19.24; 15.9 % have the greatest length."""
    for distribution, mean in ((Lengths(1, 12, 10, 2), 9.40), (Lengths(1, 24, 20, 4), 19.24)):
        rng = random.Random(0)
        drawn = Counter(distribution.draw(rng) for _ in range(20_000))
        assert sum(length * number for length, number in drawn.items()) / 20_000 == pytest.approx(mean, abs=0.07)
        assert drawn[distribution.greatest] / 20_000 == pytest.approx(0.159, abs=0.01)


def test_strings_are_uniform() -> None:
    rng, expected = random.Random(0), 100
    source = strings.xor(Lengths(6, 6))
    counts = Counter(source.draw(rng).input for _ in range(64 * expected))
    assert abs(deviation(counts, Counter(dict.fromkeys(product("01", repeat=6), 1)))) < 4
    lengths = Counter(Lengths(3, 12).draw(rng) for _ in range(10 * expected))
    assert abs(deviation(lengths, Counter(dict.fromkeys(range(3, 13), 1)))) < 4
