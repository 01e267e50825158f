"""The corpus reversal: form, lengths, splits, and its lower bound against enumeration."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.cfl.reversal import (
    Options,
    String,
    generate,
    lower_bound,
    negative_log_prefix_probability,
    negative_log_probability,
    prepare,
    split_of,
)
from fairseq_stack_preprocess.errors import PrepareError

SMALL: dict[str, Any] = {"train_size": 300, "valid_size": 30, "test_size": 30, "binarise": False}


@pytest.fixture(scope="module")
def default() -> dict[str, list[String]]:
    """The strings of the default options."""
    return generate(Options())


def test_strings_are_w_and_its_reversal(default: dict[str, list[String]]) -> None:
    for string in itertools.chain.from_iterable(default.values()):
        half = len(string) // 2
        assert string[:half] == string[half:][::-1]
        assert set(string) <= {0, 1}


def test_lengths_are_uniform_over_even_numbers(default: dict[str, list[String]]) -> None:
    counts = Counter(map(len, default["train"]))
    assert set(counts) == set(range(10, 41, 2))
    assert all(abs(count - 10_000 / 16) < 5 * math.sqrt(10_000 / 16) for count in counts.values())


@pytest.mark.parametrize(("seed", "other_seed"), [(0, 0), (0, 1)], ids=["same-seed", "two-seeds"])
def test_splits_are_disjoint(seed: int, other_seed: int) -> None:
    train = set(generate(Options(seed=seed))["train"])
    others = generate(Options(seed=other_seed))
    assert not train & set(others["valid"])
    assert not train & set(others["test"])
    assert not set(others["valid"]) & set(others["test"])


def test_w_is_uniform_among_the_strings_of_its_split() -> None:
    options = Options(min_length=10, max_length=10, train_size=20_000)
    counts = Counter(generate(options)["train"])
    own = [half for half in itertools.product(range(2), repeat=5) if split_of(half) == "train"]
    expected = 20_000 / len(own)
    assert len(counts) == len(own)
    assert all(abs(count - expected) < 5 * math.sqrt(expected) for count in counts.values())


def test_alphabet_and_length_options(tmp_path: Path) -> None:
    options = Options(symbols=5, min_length=6, max_length=8, **SMALL)
    prepare(options, tmp_path / "out")
    lines = (tmp_path / "out" / "text" / "train.txt").read_text(encoding="utf-8").splitlines()
    assert {len(line.split(" ")) for line in lines} == {6, 8}
    assert {symbol for line in lines for symbol in line.split(" ")} == set("01234")


def test_seed_decides() -> None:
    assert generate(Options(**SMALL)) == generate(Options(**SMALL))
    assert generate(Options(**SMALL)) != generate(Options(**SMALL, seed=1))


@pytest.mark.parametrize(("symbols", "lengths"), [(2, range(2, 13, 2)), (3, range(2, 9, 2)), (2, range(6, 13, 2))])
def test_probabilities_against_enumeration(symbols: int, lengths: range) -> None:
    """p sums to 1, and a prefix has the probability of all the strings that begin with it."""
    language = {
        half + half[::-1]: math.exp(-negative_log_probability(length, lengths, symbols))
        for length in lengths
        for half in itertools.product(range(symbols), repeat=length // 2)
    }
    assert math.fsum(language.values()) == pytest.approx(1, rel=1e-12)
    for string in list(language)[::7]:
        prefix = math.fsum(p for other, p in language.items() if other[: len(string)] == string)
        value = negative_log_prefix_probability(string, lengths, symbols)
        assert value == pytest.approx(-math.log(prefix), rel=1e-12, abs=1e-12)


def test_lower_bound_is_the_sum_over_the_strings() -> None:
    options = Options(min_length=2, max_length=4, binarise=False)
    strings = [(0, 0), (0, 1, 1, 0)]
    bound = lower_bound(strings, options)
    # Lengths 2 and 4: p(00) = 1/4 and p(0110) = 1/8. A string begins 00 with probability 1/4 (itself) + 1/8.
    assert bound["nats_with_eos"] == pytest.approx(math.log(4) + math.log(8), abs=1e-6)
    assert bound["nats_without_eos"] == pytest.approx(-math.log(3 / 8) - math.log(1 / 8), abs=1e-6)
    assert (bound["tokens_with_eos"], bound["tokens_without_eos"]) == (8, 6)
    assert bound["bits_per_token_with_eos"] == pytest.approx(5 / 8)
    assert bound["perplexity_with_eos"] == pytest.approx(2 ** (5 / 8), abs=1e-6)


def test_side_files_agree_with_the_text(tmp_path: Path) -> None:
    options = Options(**SMALL)
    prepare(options, tmp_path / "out")
    bounds = json.loads((tmp_path / "out" / "lower_bound.json").read_text(encoding="utf-8"))
    for split, bound in bounds.items():
        text = (tmp_path / "out" / "text" / f"{split}.txt").read_text(encoding="utf-8").splitlines()
        rows = (tmp_path / "out" / "text" / f"{split}.nll").read_text(encoding="utf-8").splitlines()
        with_eos, without = zip(*(map(float, row.split("\t")) for row in rows), strict=True)
        assert len(text) == len(rows) == bound["sentences"]
        assert sum(with_eos) == pytest.approx(bound["nats_with_eos"], abs=1e-3)
        assert sum(without) == pytest.approx(bound["nats_without_eos"], abs=1e-3)
        assert all(a >= b for a, b in zip(with_eos, without, strict=True))


def test_length_without_strings_for_a_split_is_an_error_that_leaves_nothing(tmp_path: Path) -> None:
    options = Options(min_length=2, max_length=2, **SMALL)
    with pytest.raises(PrepareError, match=r"none of the 2 strings of length 2 belongs to \w+ .* raise --min"):
        prepare(options, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"symbols": 1}, "--symbols must be at least 2, got 1"),
        ({"min_length": 0}, "--min-length must be at least 2, got 0"),
        ({"min_length": 11}, "--min-length must be even .* got 11"),
        ({"max_length": 41}, "--max-length must be even .* got 41"),
        ({"min_length": 20, "max_length": 10}, "--max-length 10 is less than --min-length 20"),
        ({"test_size": -1}, "--test-size must be at least 1, got -1"),
    ],
    ids=["symbols", "short", "odd-min", "odd-max", "order", "size"],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(PrepareError, match=message):
        Options(**options)
