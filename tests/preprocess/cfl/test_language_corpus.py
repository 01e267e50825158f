"""The corpus cfl: its sets, its side files, the same bytes again, and mistakes."""

from __future__ import annotations

import hashlib
import json
import math
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.cfl import inside
from fairseq_stack_preprocess.cfl.language_corpus import Options, distribution_from, generate, prepare
from fairseq_stack_preprocess.cfl.languages import LANGUAGES
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.layout import SPLITS
from fairseq_stack_preprocess.trees.operations import TreeOperation, is_tree, operations
from fairseq_stack_preprocess.trees.spans import spans_of_attachments
from tests.preprocess.corpus_folders import lines_of, manifest_of, sha256_without_manifest

SMALL: dict[str, Any] = {
    "min_length": 10,
    "max_length": 14,
    "test_min_length": 8,
    "test_max_length": 16,
    "train_size": 60,
    "valid_size": 20,
    "test_per_length": 3,
    "binarise": False,
}


@pytest.fixture(scope="module")
def hardest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small binarised corpus."""
    folder = tmp_path_factory.mktemp("hardest") / "out"
    prepare(Options(task="hardest-cfl", **{**SMALL, "binarise": True}), folder)
    return folder


def test_one_length_in_each_batch() -> None:
    splits = generate(Options(task="dyck", **{**SMALL, "train_size": 2000, "valid_size": 15})).splits
    lengths = [len(string) for string in splits["train"].strings]
    batches = [set(lengths[i : i + 10]) for i in range(0, 2000, 10)]
    assert all(len(batch) == 1 for batch in batches)
    counts = [sum(batch == {length} for batch in batches) for length in (10, 12, 14)]
    assert sum(counts) == 200
    assert all(abs(count - 200 / 3) < 5 * math.sqrt(200 * 2 / 9) for count in counts)
    assert [len(list(group)) for _, group in groupby(map(len, splits["valid"].strings))] in ([10, 5], [15])


def test_test_set_has_all_lengths_and_a_seed_of_its_own() -> None:
    options: dict[str, Any] = {"task": "padded-reversal", **SMALL}
    splits = generate(Options(**options)).splits
    assert [len(string) for string in splits["test"].strings] == [n for n in range(8, 17) for _ in range(3)]
    other = generate(Options(**options, seed=1)).splits
    assert other["test"] == splits["test"]
    assert other["train"] != splits["train"]
    assert other["valid"] != splits["valid"]
    again = generate(Options(**options, test_seed=1)).splits
    assert again["test"] != splits["test"]
    assert again["train"] == splits["train"]


def test_log_probabilities_do_not_depend_on_what_is_computed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    options = Options(task="hardest-cfl", **SMALL)
    together = generate(options)
    monkeypatch.setattr(inside, "GREATEST_BATCH", 1)
    assert generate(options) == together


def test_side_files_agree_with_the_text(hardest: Path) -> None:
    bounds = json.loads((hardest / "lower_bound.json").read_text(encoding="utf-8"))
    distribution = distribution_from(Options(task="hardest-cfl", **SMALL))
    for split, lengths in (("train", 5), ("valid", 5), ("test", 9)):
        strings = [tuple(line.split(" ")) for line in lines_of(hardest / "text" / f"{split}.txt")]
        values = [float(line) for line in lines_of(hardest / "text" / f"{split}.logp")]
        assert dict(enumerate(values)) == dict(distribution.log_probabilities(strings))
        losses = [float(line) for line in lines_of(hardest / "text" / f"{split}.nll")]
        assert losses == pytest.approx([math.log(lengths) - value for value in values], rel=1e-15)
        assert bounds[split]["lengths"] == lengths
        assert bounds[split]["nats"] == pytest.approx(sum(losses), rel=1e-12)
        assert bounds[split]["tokens_without_eos"] == sum(map(len, strings))


# The hashes are the promise: these bytes, on every machine and with every version of Python and numpy.
@pytest.mark.parametrize(
    ("task", "sha256"),
    [
        ("hardest-cfl", "ddabbd539d734b88a8f17a6ed21dbaa8c051e8b57dff9587896c5d08e02be80d"),
        ("count-and-copy", "ed5d89d775f15a225037ced0ed734dc53008dfb58e7851361a13485dd0cdd75e"),
    ],
)
def test_bytes_of_a_seed(task: str, sha256: str, tmp_path: Path) -> None:
    prepare(Options(task=task, **SMALL, seed=3), tmp_path / "out")
    assert sha256_without_manifest(tmp_path / "out") == sha256


@pytest.mark.parametrize("task", [name for name, language in LANGUAGES.items() if language.attachments])
def test_parses(task: str, tmp_path: Path) -> None:
    """The stack that learns from them pops as often as it pushes, and all else is the same."""
    prepare(Options(task=task, **SMALL), tmp_path / "plain")
    prepare(Options(task=task, **SMALL, attachments=True), tmp_path / "parsed")
    assert "attachments" not in manifest_of(tmp_path / "plain")["options"]
    for split in SPLITS:
        text = (tmp_path / "parsed" / "text" / f"{split}.txt").read_text()
        assert text == (tmp_path / "plain" / "text" / f"{split}.txt").read_text()
        strings = [line.split(" ") for line in text.splitlines()]
        for string, line in zip(strings, lines_of(tmp_path / "parsed" / "text" / f"{split}.attach"), strict=True):
            attached = list(map(int, line.split(" ")))
            assert all(
                attachment == place or {string[attachment - 1], symbol} in ({"(", ")"}, {"[", "]"}, {symbol})
                for place, (symbol, attachment) in enumerate(zip(string, attached, strict=True), start=1)
            )
            of_string = operations(spans_of_attachments(attached), len(string))
            assert is_tree(of_string) and TreeOperation.CLIMB not in (of_string if task != "dyck" else ())


@pytest.mark.parametrize("options", [{"task": "hardest-cfl"}, {"grammar": Path("mine.txt")}])
def test_languages_without_parses(options: dict[str, Any]) -> None:
    with pytest.raises(PrepareError, match=r"^--attachments: (hardest-cfl|mine.txt) has no parses that are known"):
        Options(**options, attachments=True)


def test_grammar_of_ones_own(tmp_path: Path) -> None:
    text = "Sum -> Sum '+' Term [1] | Term [3]\nTerm -> 'x' [1] | '(' Sum ')' [1]\n"
    (tmp_path / "mine.txt").write_text(text)
    prepare(Options(grammar=tmp_path / "mine.txt", **SMALL), tmp_path / "out")
    manifest = manifest_of(tmp_path / "out")
    assert manifest["options"]["grammar"] == "mine.txt"
    assert manifest["inputs"] == {"mine.txt": hashlib.sha256(text.encode()).hexdigest()}
    assert str(tmp_path) not in (tmp_path / "out" / "manifest.json").read_text()
    assert {len(line.split(" ")) for line in lines_of(tmp_path / "out" / "text" / "test.txt")} == {9, 11, 13, 15}
    again = Options(grammar=tmp_path / "out" / "grammar.txt", **SMALL)
    assert generate(again) == generate(Options(grammar=tmp_path / "mine.txt", **SMALL))


def test_own_grammar_keeps_unary_first_rules(tmp_path: Path) -> None:
    (tmp_path / "g").write_text("S -> T\nT -> 'a' T | 'a'")
    assert generate(Options(grammar=tmp_path / "g", **SMALL)).splits["test"].strings[0] == ("a",) * 8


def test_lengths_that_a_language_does_not_have() -> None:
    options = Options(task="dyck", **{**SMALL, "min_length": 11, "max_length": 11})
    with pytest.raises(PrepareError, match=r"^train: dyck has no string with a length from 11 to 11$"):
        generate(options)


def test_manifest(hardest: Path) -> None:
    manifest = manifest_of(hardest)
    assert manifest["corpus"] == "cfl"
    assert manifest["options"]["task"] == "hardest-cfl"
    assert manifest["options"]["parameters"] == LANGUAGES["hardest-cfl"].defaults
    for split, counts in manifest["splits"].items():
        strings = lines_of(hardest / "text" / f"{split}.txt")
        assert counts["strings"] == len(strings) == sum(counts["strings_by_length"].values())
        assert counts["distinct_strings"] == len(set(strings))
        assert counts["symbols"] == sum(len(string.split(" ")) for string in strings)
