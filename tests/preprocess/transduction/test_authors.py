"""The authors' test sets, to the byte: by the hashes of their files, and by the golden strings."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from fairseq_stack_preprocess.transduction.authors import TEST_SETS
from fairseq_stack_preprocess.transduction.pairs import Pair
from fairseq_stack_preprocess.transduction.task_corpus import sources
from fairseq_stack_preprocess.transduction.task_options import Options
from tests.helpers import each_golden_file

SHA256 = {
    "reversal": "c39555d332b6138f386721d94c68b60fba2ade52071bda8b3ede287d733e9da9",
    "xor": "2fec08dcdb912b29a83a8e725ddef606f5f68f68dd369ebba5470b51b449ecd8",
    "delayed_xor": "2bb7b623d41c524799badaf167ac2eb91d6bc16fb57d6521cc6f8bd93b5d044b",
    "parenthesis": "d3fe7e959c1521cf1789210901d6e535944472130fff375408e872b0f958265b",
    "formula": "9881fd65e46beacb7d8cdb22b16b269d4439da17e232674c4e1f4f0c0624e48f",
    "agreement": "f2a1da049525df79e3146bca76d356f01b94fd06d991987a859e63de9a39add9",
}
"""Of the authors' files dyck.csv, agreement.csv, formula.csv, reverse.csv, parity.csv and delayed_parity.csv."""


@pytest.fixture(scope="module")
def drawn_sets() -> dict[str, list[Pair]]:
    return {task: draw() for task, draw in TEST_SETS.items()}


def line_of_file(task: str, pair: Pair) -> str:
    """The line of a pair in the authors' file: without blanks after an input, and without the end of a string."""
    inputs = pair.input[: len(pair.input) // 2] if task == "reversal" else pair.input
    targets = pair.target[:-1] if task in ("parenthesis", "agreement") else pair.target
    return f"{' '.join(inputs)},{' '.join(targets)}\n"


@pytest.mark.parametrize("task", TEST_SETS)
def test_bytes_of_the_file(task: str, drawn_sets: dict[str, list[Pair]]) -> None:
    text = "".join(line_of_file(task, pair) for pair in drawn_sets[task])
    assert hashlib.sha256(text.encode()).hexdigest() == SHA256[task]


@each_golden_file("neural_stacks/test_sets.npz")
def test_golden_strings_in_their_order(path: Path, drawn_sets: dict[str, list[Pair]]) -> None:
    with np.load(path) as golden:
        for task, pairs in drawn_sets.items():
            alphabet = [str(symbol) for symbol in golden[f"{task}_alphabet"]]
            assert sources(Options(task))["test"].alphabet.symbols == tuple(alphabet)
            rows = [tuple(alphabet[code] for code in row[row != 255]) for row in golden[f"{task}_inputs"]]
            assert len(rows) == 1000
            for pair, row in zip(pairs, rows, strict=True):
                blanks = len(row) if task == "reversal" else 0
                assert pair.input == row + ("2",) * blanks


def test_longest_input_covers_the_set(drawn_sets: dict[str, list[Pair]]) -> None:
    for task, pairs in drawn_sets.items():
        assert max(len(pair.input) for pair in pairs) <= sources(Options(task))["test"].longest
