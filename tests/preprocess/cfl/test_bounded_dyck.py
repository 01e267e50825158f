"""The corpus bounded-dyck: the generator, the parses, and the two further test sets."""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest

from fairseq_stack_preprocess.cfl.bounded_dyck import (
    Options,
    attachments,
    brackets,
    draw_string,
    generate,
    is_bounded_dyck,
    prepare,
)
from tests.preprocess.corpus_folders import manifest_of

SMALL = Options(
    train_size=50,
    valid_size=20,
    test_size=20,
    distance_size=30,
    depth_from=3,
    depth_to=5,
    binarise=False,
    max_length=60,
)


def depths(string: tuple[str, ...]) -> list[int]:
    """How many brackets are open after each symbol."""
    return list(accumulate(1 if symbol.startswith("(") else -1 for symbol in string))


def test_golden_attachments(reference_data: Path) -> None:
    lines = (reference_data / "golden" / "pushdown" / "dyck.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 48
    for line in map(json.loads, lines):
        assert list(attachments(line["tokens"][1:])) == line["attachments"][1:]


def test_types_of_brackets() -> None:
    names = brackets(26 * 27 + 1)
    assert names[0] == ("(a", "a)") and names[25][0] == "(z" and names[26][0] == "(aa" and names[-1][0] == "(aaa"
    assert len({symbol for pair in names for symbol in pair}) == 2 * len(names)


def test_strings_are_balanced_and_bounded() -> None:
    rng, pairs = random.Random(0), brackets(20)
    strings = [draw_string(rng, pairs, max_depth=3, min_length=4, max_length=30) for _ in range(300)]
    for string in strings:
        attachments(string)
        assert depths(string)[-1] == 0 and min(depths(string)) >= 0 and max(depths(string)) <= 3
        assert 4 <= len(string) <= 30
    assert {max(depths(string)) for string in strings} == {1, 2, 3}
    assert {symbol for string in strings for symbol in string} == {symbol for pair in pairs for symbol in pair}


def test_the_distribution_of_lengths() -> None:
    """()() has the probability 1/8, since no string ends after two symbols, and (()) has 1/16."""
    rng = random.Random(0)
    strings = [draw_string(rng, brackets(2), max_depth=10, min_length=4, max_length=600) for _ in range(4000)]
    assert statistics.mean(len(string) == 4 for string in strings) == pytest.approx(3 / 16, abs=0.02)
    assert statistics.mean(map(len, strings)) == pytest.approx(50, abs=5)


def test_strings_of_the_depth_test() -> None:
    """d nested brackets of ten types with a string of test inserted anywhere before the last bracket."""
    sets = generate(SMALL)
    assert len(sets["depth"]) == 3 * SMALL.depth_strings
    inserted = {" ".join(string) for string in sets["test"]}
    last_places = []
    for number, string in enumerate(sets["depth"]):
        depth = 3 + number // SMALL.depth_strings
        assert depths(string)[-1] == 0 and attachments(string)
        rests = {
            start: (*string[:start], *string[stop:])
            for start in range(2 * depth)
            for stop in range(start + 1, len(string))
            if " ".join(string[start:stop]) in inserted
        }
        nested = [*range(1, depth + 1), *range(depth - 1, -1, -1)]
        places = [start for start, rest in rests.items() if depths(rest) == nested]
        last_places.append(max(places) / depth)
    assert 0 <= min(last_places) < 0.5 and 1.5 < max(last_places) < 2


def test_seeds() -> None:
    first, again = generate(SMALL), generate(SMALL)
    assert first == again
    other = generate(replace(SMALL, seed=1))
    assert other["train"] != first["train"] and other["valid"] != first["valid"]
    assert all(other[name] == first[name] for name in ("test", "distance", "depth"))
    other = generate(replace(SMALL, test_seed=1))
    assert other["train"] == first["train"]
    assert all(other[name] != first[name] for name in ("test", "distance", "depth"))


def test_files(tmp_path: Path) -> None:
    prepare(SMALL, tmp_path / "out")
    text, sets = tmp_path / "out" / "text", generate(SMALL)
    for name, strings in sets.items():
        assert (text / f"{name}.txt").read_text().splitlines() == [" ".join(string) for string in strings]
        lines = (text / f"{name}.attach").read_text().splitlines()
        assert [tuple(map(int, line.split())) for line in lines] == [attachments(string) for string in strings]
    manifest = manifest_of(tmp_path / "out")
    assert manifest["corpus"] == "cfl" and is_bounded_dyck(manifest)
    assert manifest["splits"]["train"]["strings"] == 50
    most = max(max(depths(string)) for string in sets["distance"])
    assert manifest["further_test_sets"]["distance"]["most_open"] == most
    assert manifest["options"]["max_length"] == 60
