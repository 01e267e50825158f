"""Classes of rare words: by hand, against the oracles, and the fingerprint of the real training text."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_stack_preprocess.trees.ptb import DYER_2016
from fairseq_stack_preprocess.trees.word_classes import Fingerprint, known_or_class, known_words, word_class

KNOWN = {"running", "the", "us"}
CLASS = re.compile(r"UNK(-INITC|-INITC-KNOWNLC|-CAPS|-LC)?(-NUM)?(-DASH)?(-s|-ed|-ing|-ion|-er|-est|-ly|-ity|-y|-al)?")


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("iPhone", "UNK-LC"),
        ("'Tis", "UNK-CAPS"),
        ("'tis", "UNK-LC"),
        ("B-52s", "UNK-INITC-NUM-DASH-s"),
        ("re-reading", "UNK-LC-DASH"),
        ("X9-ing", "UNK-INITC-NUM-DASH"),
        ("X9ing", "UNK-INITC-NUM"),
        ("x9ing", "UNK-LC-NUM-ing"),
        ("größer", "UNK-LC-er"),
    ],
)
def test_classes(word: str, expected: str) -> None:
    assert word_class(word, KNOWN) == expected


@given(word=st.text(min_size=1, max_size=12))
def test_every_word_has_a_class(word: str) -> None:
    assert CLASS.fullmatch(word_class(word, KNOWN))


def test_singletons_are_not_known() -> None:
    known = known_words({"a": 1, "b": 2, "c": 3})
    assert known == {"b", "c"}
    assert [known_or_class(word, known) for word in "abd"] == ["UNK-LC", "b", "UNK-LC"]


def test_published_vocabulary(reference_data: Path) -> None:
    """All published classes are ones that we make; and the fingerprint is that of the published counts, when the
    two entries that a sentence which is missing left behind are put right."""
    path = reference_data / "data" / "dyer_ptb" / "clab.clusters-train-berk.txt.gz"
    rows = [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    counts = Counter({word: int(count) for _, word, count in rows})
    classes = {word for word in counts if word.startswith("UNK")}
    known = counts.keys() - classes
    assert (len(counts), counts.total(), len(classes)) == (23_834, 950_013, 66)
    assert all(CLASS.fullmatch(name) for name in classes)
    assert {word for word in known if counts[word] < 2} == {"NT(NP)", "variable-rate"}
    del counts["NT(NP)"]
    counts[word_class("variable-rate", known)] += counts.pop("variable-rate")
    assert Fingerprint.of(counts) == DYER_2016


def test_fingerprint_does_not_depend_on_order() -> None:
    first, second = Counter({"b": 1, "a": 2}), Counter({"a": 2, "b": 1})
    assert Fingerprint.of(first) == Fingerprint.of(second)
    assert Fingerprint.of(first) != Fingerprint.of(Counter({"a": 1, "b": 2}))
    assert (Fingerprint.of(first).types, Fingerprint.of(first).tokens) == (2, 3)
