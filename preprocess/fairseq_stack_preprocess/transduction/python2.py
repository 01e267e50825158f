"""The order in which Python 2 goes through a set, and its shuffling: the authors' test sets are ordered by them.

Python 2 (64 bits, without ``-R``) hashes strings and tuples in the same way in every process, and a set keeps its items
in a table at a place that their hashes decide.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")

_WORD = 2**64 - 1


def hash_text(text: str) -> int:
    """Python 2's hash of an ASCII string, as an unsigned integer of 64 bits."""
    if not text:
        return 0
    value = ord(text[0]) << 7
    for character in text:
        value = (1_000_003 * value ^ ord(character)) & _WORD
    return _usable(value ^ len(text))


def hash_texts(texts: Iterable[str]) -> int:
    """Python 2's hash of a tuple of ASCII strings, as an unsigned integer of 64 bits."""
    hashes = [hash_text(text) for text in texts]
    value, factor = 0x345678, 1_000_003
    for position, item in enumerate(hashes, start=1):
        value = (value ^ item) * factor & _WORD
        factor += 82_520 + 2 * (len(hashes) - position)
    return _usable((value + 97_531) & _WORD)


def _usable(value: int) -> int:
    """-1 stands for an error in C, so that -2 takes its place."""
    return _WORD - 1 if value == _WORD else value


def set_order(items: Iterable[T], hashed: Callable[[T], int]) -> list[T]:
    """The distinct items in the order of Python 2's ``list(set(items))``, for sets of at most 50,000 items.

    Args:
        items: the items in the order in which they are added.
        hashed: Python 2's hash.
    """
    places: list[tuple[int, T] | None] = [None] * 8
    used = 0
    for item in items:
        used += _put(places, hashed(item), item)
        if used * 3 >= len(places) * 2:
            entries = [entry for entry in places if entry is not None]
            places = [None] * (1 << (4 * used).bit_length())
            for entry in entries:
                _put(places, *entry)
    return [entry[1] for entry in places if entry is not None]


def _put(places: list[tuple[int, T] | None], value: int, item: T) -> bool:
    """Put an item with its hash at the first free place of its probe sequence; False if it is there already."""
    place = perturbation = value
    while (entry := places[place % len(places)]) is not None:
        if entry == (value, item):
            return False
        place = 5 * place + perturbation + 1
        perturbation >>= 5
    places[place % len(places)] = value, item
    return True


def shuffle(rng: random.Random, items: list[T]) -> None:
    """Shuffle a list in place as Python 2 does."""
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
