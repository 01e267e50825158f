"""The corpus nested-translation: its sentences, its splits and its files."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest

from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.nested.grammar import nested_grammar
from fairseq_stack_preprocess.nested.nested_corpus import (
    NestedTranslation,
    Options,
    generate,
    prepare,
)
from fairseq_stack_preprocess.text import splits as splits_module

SMALL: dict[str, Any] = {"train_size": 200, "valid_size": 20, "test_size": 20, "binarise": False}


@pytest.fixture(scope="module")
def corpus() -> NestedTranslation:
    """The corpus of the default options, except for its size."""
    return generate(Options(train_size=4000))


def test_pairs_of_a_seed_never_change(corpus: NestedTranslation) -> None:
    digest = hashlib.sha256()
    for pair in itertools.chain.from_iterable(corpus.splits.values()):
        digest.update(repr((pair.source, pair.target, pair.alignment, pair.nesting)).encode())
    assert digest.hexdigest() == "3f4faacc028358da0b36f65144c6871e1c549f52a0e4f5628c55c044088cef1d"


def test_vocabulary_is_complete_and_of_100_to_200_words_a_side(corpus: NestedTranslation) -> None:
    german = {word for pair in corpus.splits["train"] for word in pair.source}
    english = {word for pair in corpus.splits["train"] for word in pair.target}
    rules = list(itertools.chain.from_iterable(nested_grammar().rules.values()))
    assert german == {item for rule in rules for item in rule.source if isinstance(item, str)}
    assert english == {item for rule in rules for item in rule.target if isinstance(item, str)}
    assert 100 <= len(english) <= len(german) <= 200


def test_test_depth_applies_to_test_only() -> None:
    corpus = generate(Options(depth=1, test_depth=5, **SMALL))
    deepest = {split: max(pair.nesting for pair in pairs) for split, pairs in corpus.splits.items()}
    assert deepest == {"train": 1, "valid": 1, "test": 5}


def test_train_size_does_not_change_test_and_valid() -> None:
    small = generate(Options(**SMALL))
    large = generate(Options(**{**SMALL, "train_size": 300}))
    assert small.splits["test"] == large.splits["test"]
    assert small.splits["valid"] == large.splits["valid"]
    assert small.splits["train"] == large.splits["train"][:200]


def test_files_hold_the_corpus(tmp_path: Path) -> None:
    options = Options(**SMALL)
    prepare(options, tmp_path / "out")
    for split, pairs in generate(options).splits.items():
        lines = {
            suffix: (tmp_path / "out" / "text" / f"{split}.{suffix}").read_text(encoding="utf-8").splitlines()
            for suffix in ("de", "en", "align", "depth")
        }
        assert [tuple(line.split(" ")) for line in lines["de"]] == [pair.source for pair in pairs]
        assert [tuple(line.split(" ")) for line in lines["en"]] == [pair.target for pair in pairs]
        assert [int(line) for line in lines["depth"]] == [pair.nesting for pair in pairs]
        links = [tuple(tuple(map(int, link.split("-"))) for link in line.split()) for line in lines["align"]]
        assert links == [pair.alignment for pair in pairs]


def test_exhausted_grammar_is_an_error_that_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits_module, "TRIES_IN_A_ROW", 1)
    options = Options(depth=0, train_size=10_000, valid_size=1, test_size=1, binarise=False)
    with pytest.raises(PrepareError, match=r"--train-size 10000 is too large: \d+ sentences were found"):
        prepare(options, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_greatest_depth_can_be_sampled() -> None:
    corpus = generate(Options(depth=30, train_size=10, valid_size=1, test_size=1))
    assert max(pair.nesting for pair in corpus.splits["train"]) > 15
