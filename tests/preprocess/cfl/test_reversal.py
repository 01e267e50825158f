"""The corpus reversal: form, lengths, splits, and its lower bound against enumeration."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.cfl.languages import Word
from fairseq_stack_preprocess.cfl.reversal import Options, generate, prefix_bounds, prepare, split_of, string_set
from fairseq_stack_preprocess.cfl.string_sets import StringSet
from fairseq_stack_preprocess.text.numbers import read_numbers
from tests.preprocess.corpus_folders import sha256_without_manifest

SMALL: dict[str, Any] = {"train_size": 300, "valid_size": 30, "test_size": 30, "binarise": False}


@pytest.fixture(scope="module")
def default() -> dict[str, StringSet]:
    """The strings of the default options."""
    return generate(Options())


def test_strings_are_w_and_its_reversal(default: dict[str, StringSet]) -> None:
    for string in itertools.chain.from_iterable(strings.strings for strings in default.values()):
        half = len(string) // 2
        assert string[:half] == string[half:][::-1]
        assert set(string) <= {"0", "1"}


def test_lengths_are_uniform_over_even_numbers(default: dict[str, StringSet]) -> None:
    counts = Counter(map(len, default["train"].strings))
    assert set(counts) == set(range(10, 41, 2))
    assert all(abs(count - 10_000 / 16) < 5 * math.sqrt(10_000 / 16) for count in counts.values())


@pytest.mark.parametrize(("seed", "other_seed"), [(0, 0), (0, 1)], ids=["same-seed", "two-seeds"])
def test_splits_are_disjoint(seed: int, other_seed: int) -> None:
    train = set(generate(Options(seed=seed))["train"].strings)
    others = generate(Options(seed=other_seed))
    valid, test = (set(others[split].strings) for split in ("valid", "test"))
    assert not train & valid
    assert not train & test
    assert not valid & test


def test_w_is_uniform_among_the_strings_of_its_split() -> None:
    options = Options(min_length=10, max_length=10, train_size=20_000)
    counts = Counter(generate(options)["train"].strings)
    halves = [half for half in itertools.product("01", repeat=5) if split_of(half) == "train"]
    expected = 20_000 / len(halves)
    assert len(counts) == len(halves)
    assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts.values())


@pytest.mark.parametrize(("symbols", "least", "greatest"), [(2, 2, 12), (3, 2, 8), (2, 6, 12)])
def test_probabilities_against_enumeration(symbols: int, least: int, greatest: int) -> None:
    """p sums to 1, and a prefix has the probability of all the strings that begin with it."""
    options = Options(symbols=symbols, min_length=least, max_length=greatest)
    strings: list[Word] = [
        half + half[::-1]
        for length in options.lengths()
        for half in itertools.product("012"[:symbols], repeat=length // 2)
    ]
    language = string_set(strings, options)
    probabilities = {w: math.exp(-bound) for w, bound in zip(strings, language.bounds(), strict=True)}
    assert math.fsum(probabilities.values()) == pytest.approx(1, rel=1e-12)
    for string, value in list(zip(strings, prefix_bounds(language, options), strict=True))[::7]:
        prefix = math.fsum(p for other, p in probabilities.items() if other[: len(string)] == string)
        assert value == pytest.approx(-math.log(prefix), rel=1e-12, abs=1e-12)


def test_side_files_agree_with_the_text(tmp_path: Path) -> None:
    options = Options(**SMALL)
    prepare(options, tmp_path / "out")
    bounds = json.loads((tmp_path / "out" / "lower_bound.json").read_text(encoding="utf-8"))
    for split, bound in bounds.items():
        text = tmp_path / "out" / "text"
        lengths = [len(line.split(" ")) for line in (text / f"{split}.txt").read_text("utf-8").splitlines()]
        given_length, whole, prefix = (
            read_numbers(text / f"{split}.{name}", float) for name in ("logp", "nll", "prefix-nll")
        )
        assert given_length == pytest.approx([-length / 2 * math.log(2) for length in lengths], rel=1e-15)
        assert whole == pytest.approx([math.log(16) - value for value in given_length], rel=1e-15)
        assert all(a >= b for a, b in zip(whole, prefix, strict=True))
        assert (bound["lengths"], bound["strings"], bound["tokens_without_eos"]) == (16, len(lengths), sum(lengths))
        assert bound["nats"] == pytest.approx(math.fsum(whole), rel=1e-12)
        assert bound["prefixes"]["nats"] == pytest.approx(math.fsum(prefix), rel=1e-12)
        assert bound["prefixes"]["nats_per_token"] == pytest.approx(math.fsum(prefix) / sum(lengths), abs=1e-9)


# The hash is the promise: these bytes, on every machine and with every version of Python.
def test_bytes_of_a_seed(tmp_path: Path) -> None:
    prepare(Options(symbols=3, **SMALL, seed=3), tmp_path / "out")
    assert (
        sha256_without_manifest(tmp_path / "out") == "6369a0cdb0e6ecccabe6d44bf86bb8ae086421791b78e0f3e1bcc903ac74d56f"
    )
