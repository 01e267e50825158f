"""What Python 2.7.18 printed for the same calls."""

from __future__ import annotations

import random

import pytest

from fairseq_stack_preprocess.transduction.python2 import hash_text, hash_texts, set_order, shuffle


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 12416037344),
        ("T", 10752032341),
        ("and", 1453079729200098176),
        ("0 1 1", 1121431099849322621),
        ("Nplur Rel", 3109769248077591527),
    ],
)
def test_hash_of_a_text(text: str, value: int) -> None:
    assert hash_text(text) == value


@pytest.mark.parametrize(
    ("texts", "value"),
    [((), 3527539), (("T", "1"), 316693810832197110), (("0 1", "2 2 1 0"), 5709241834748841995)],
)
def test_hash_of_a_tuple(texts: tuple[str, ...], value: int) -> None:
    assert hash_texts(texts) == value


def test_order_of_a_set_that_grew_twice() -> None:
    words = [f"{i * i % 97} {i}" for i in range(60)]
    numbers = [int(word.split()[1]) for word in set_order([*words, *words[:5]], hash_text)]
    assert numbers == [
        *(57, 29, 2, 32, 51, 3, 45, 23, 24, 8, 15, 4, 43, 0, 34, 41, 1, 13, 27, 36),
        *(17, 38, 22, 53, 58, 39, 19, 50, 18, 12, 28, 48, 20, 40, 52, 14, 49, 46, 44, 42),
        *(35, 30, 11, 7, 37, 26, 5, 59, 21, 25, 16, 56, 55, 33, 6, 54, 10, 9, 31, 47),
    ]


def test_shuffle() -> None:
    items = list(range(12))
    shuffle(random.Random(5), items)
    assert items == [9, 4, 1, 3, 2, 0, 6, 5, 10, 11, 8, 7]
