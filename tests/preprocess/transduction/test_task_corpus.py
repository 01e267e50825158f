"""The corpus as files: contents, the same bytes, and options out of range."""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.text.splits import sizes_of
from fairseq_stack_preprocess.transduction.authors import TEST_SETS
from fairseq_stack_preprocess.transduction.task_corpus import Options, generate, prepare, sources
from fairseq_stack_preprocess.transduction.tasks import TASKS

SMALL: dict[str, Any] = {"train_size": 20, "valid_size": 5, "test_size": 5, "binarise": False}
TINY: dict[str, Any] = {"train_size": 1, "valid_size": 1, "test_size": 1, "test_set": "drawn"}


def options(task: str, **more: Any) -> Options:
    return Options(task, **{**SMALL, "test_set": "drawn", **more})


@pytest.mark.parametrize("task", TASKS)
def test_files_hold_the_corpus(task: str, tmp_path: Path) -> None:
    prepare(options(task), tmp_path / "out")
    corpus = generate(options(task))
    for split, pairs in corpus.splits.items():
        sides = [
            (tmp_path / "out" / "text" / f"{split}.{side}").read_text(encoding="utf-8").splitlines()
            for side in ("input", "target")
        ]
        assert sides == [[" ".join(pair.input) for pair in pairs], [" ".join(pair.target) for pair in pairs]]
        assert len(pairs) == {"train": 20}.get(split, 5)
        for pair in pairs:
            assert len(pair.input) <= corpus.longest[split]
            assert {*pair.input, *pair.target} <= set(corpus.alphabet.symbols)
            assert task == "reverse_deletion" or set(pair.target) & set(corpus.alphabet.scored)
    content = json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))
    assert list(content) == ["task", "alphabet", "blank", "scored", "longest"]
    assert content["task"] == task
    assert {content["blank"], *content["scored"]} <= set(content["alphabet"])
    vocabulary = (tmp_path / "out" / "text" / "vocabulary.txt").read_text(encoding="utf-8").splitlines()
    assert vocabulary == [f"{symbol} 1" for symbol in content["alphabet"]]


def test_pairs_of_a_seed_never_change() -> None:
    digest = hashlib.sha256()
    for task in TASKS:
        for pair in itertools.chain.from_iterable(generate(options(task)).splits.values()):
            digest.update(f"{' '.join(pair.input)}\t{' '.join(pair.target)}\n".encode())
    assert digest.hexdigest() == "99dd080bbb344c9b0088011bac0e2b4d94e3bf6766c41fce422fc3b32bf7a7e7"


@pytest.mark.parametrize("task", TASKS)
def test_smallest_corpus(task: str) -> None:
    settings: dict[str, Any] = {}
    if "depth" in TASKS[task].train:
        settings = {"depth": 3, "test_depth": 3}
    elif "mean_length" in TASKS[task].train:
        settings = {"min_length": 1, "max_length": 1, "mean_length": 1, "test_min_length": 1, "test_max_length": 1}
        settings["test_mean_length"] = 1
    else:
        least = TASKS[task].least_length
        settings = dict.fromkeys(("min_length", "max_length", "test_min_length", "test_max_length"), least)
    corpus = generate(Options(task, **TINY, **settings))
    assert {split: len(pairs) for split, pairs in corpus.splits.items()} == {"train": 1, "valid": 1, "test": 1}


def test_binarised_in_the_order_of_the_alphabet(tmp_path: Path) -> None:
    prepare(options("agreement", binarise=True), tmp_path / "out")
    alphabet = json.loads((tmp_path / "out" / "task.json").read_text(encoding="utf-8"))["alphabet"]
    for side in ("input", "target"):
        lines = (tmp_path / "out" / "data-bin" / f"dict.{side}.txt").read_text(encoding="utf-8").splitlines()
        assert lines == [f"{symbol} 1" for symbol in alphabet]


def test_seeds_are_independent() -> None:
    first, second = generate(options("reversal")), generate(options("reversal", seed=1))
    assert first.splits["train"] != second.splits["train"]
    assert first.splits["test"] == second.splits["test"]
    other = generate(options("reversal", test_seed=1, train_size=30))
    assert other.splits["test"] != first.splits["test"]
    assert other.splits["train"][:20] == first.splits["train"]


def test_authors_test_set_is_the_default() -> None:
    corpus = generate(Options("xor", **SMALL))
    assert corpus.splits["test"] == TEST_SETS["xor"]()[:5]
    assert generate(Options("xor", **{**SMALL, "seed": 1})).splits["test"] == corpus.splits["test"]


def test_drawn_test_strings_are_distinct_and_repetitions_are_counted() -> None:
    corpus = generate(options("xor", test_size=16, test_min_length=4, test_max_length=4))
    assert len({pair.input for pair in corpus.splits["test"]}) == 16
    assert corpus.dropped["test"]["already in test"] > 0
    repeated = generate(options("parenthesis", test_size=30, test_depth=3))
    assert len({pair.input for pair in repeated.splits["test"]}) == 2


def test_defaults_are_the_papers() -> None:
    assert sizes_of(Options("reversal")) == {"train": 800, "valid": 100, "test": 1000}
    actual = {task: [source.longest for source in sources(Options(task)).values()] for task in list(TASKS)[:6]}
    assert actual == {
        "reversal": [24, 24, 48],
        "xor": [12, 12, 24],
        "delayed_xor": [12, 12, 24],
        "parenthesis": [20, 20, 110],
        "formula": [15, 15, 31],
        "agreement": [23, 23, 51],
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "parenthesis", "depth": 2}, "--depth 2: parenthesis has no string of this depth; give a larger one"),
        ({"task": "formula", "test_set": "drawn", "test_depth": 99}, "--test-depth 99: strings of formula have up to "),
        ({"task": "copy", "test_max_length": 2, "test_mean_length": 2.0}, "--test-size 1000 is too large: "),
    ],
)
def test_impossible_corpora_leave_nothing(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PrepareError) as caught:
        prepare(Options(**settings, binarise=False), tmp_path / "new" / "out")
    assert str(caught.value).startswith(message)
    assert list(tmp_path.iterdir()) == []
