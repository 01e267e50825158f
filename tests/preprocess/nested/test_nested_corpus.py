"""The corpus nested-translation, judged by an independent parser and translator (oracle.py)."""

from __future__ import annotations

import itertools
from collections import Counter
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
from fairseq_stack_preprocess.nested.synchronous_grammar import SentencePair
from fairseq_stack_preprocess.text import splits as splits_module
from tests.preprocess.nested.oracle import dictionary, readings

SMALL: dict[str, Any] = {"train_size": 200, "valid_size": 20, "test_size": 20, "binarise": False}


@pytest.fixture(scope="module")
def corpus() -> NestedTranslation:
    """The corpus of the default options, except for its size."""
    return generate(Options(train_size=4000))


@pytest.fixture(scope="module")
def pairs(corpus: NestedTranslation) -> list[SentencePair]:
    """Its pairs, and some of a greater depth."""
    deep = generate(Options(depth=6, train_size=200, valid_size=1, test_size=1, seed=1))
    return [pair for part in (corpus, deep) for split in part.splits.values() for pair in split]


def test_each_source_has_one_reading_and_it_is_the_target(pairs: list[SentencePair]) -> None:
    for pair in pairs:
        assert readings(pair.source) == [(" ".join(pair.target), pair.nesting)], " ".join(pair.source)


def test_alignment_links_every_word_but_commas_to_its_translation(pairs: list[SentencePair]) -> None:
    translations = dictionary()
    for pair in pairs:
        linked_source, linked_target = (sorted(column) for column in zip(*pair.alignment, strict=True))
        assert linked_source == [i for i, word in enumerate(pair.source) if word != ","]
        assert linked_target == list(range(len(pair.target)))
        for i, j in pair.alignment:
            assert pair.target[j] in translations[pair.source[i]]


def test_target_order_differs_from_source_order(pairs: list[SentencePair]) -> None:
    nested = [pair for pair in pairs if pair.nesting > 0]
    crossed = sum(
        any(b < a for (_, a), (_, b) in zip(pair.alignment, pair.alignment[1:], strict=False)) for pair in nested
    )
    assert crossed > len(nested) / 2


def test_splits_are_disjoint(corpus: NestedTranslation) -> None:
    sources = [" ".join(pair.source) for pairs in corpus.splits.values() for pair in pairs]
    assert len(sources) == len(set(sources)) == 6000


def test_nesting_is_uniform_up_to_the_depth(corpus: NestedTranslation) -> None:
    counts = Counter(pair.nesting for pair in corpus.splits["train"])
    assert set(counts) == {0, 1, 2, 3}
    # Dropped repetitions are short sentences, which makes depth 0 somewhat rarer.
    assert all(abs(count - 1000) < 150 for count in counts.values())


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
