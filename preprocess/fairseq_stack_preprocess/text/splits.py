"""Train, valid and test: their sizes, their random streams, and drawing from them, also without repetition."""

from __future__ import annotations

import random
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ..errors import PrepareError
from ..layout import SPLITS

T = TypeVar("T")

TRIES_IN_A_ROW = 1000
"""The number of consecutive repetitions after which a corpus counts as exhausted."""

SIZES = (1, 100_000_000)
"""The range of the number of sentences in a generated split, which is kept in memory."""


def sizes_of(options: object) -> dict[str, int]:
    """The number of sentences in each split, from options such as ``train_size``."""
    return {split: getattr(options, f"{split}_size") for split in SPLITS}


def stream(seed: int, split: str) -> random.Random:
    """The random numbers of one split, which depend neither on other splits nor on hash randomisation."""
    return random.Random(f"{seed}/{split}")


def pick(rng: random.Random, items: Sequence[T]) -> T:
    """One of the items, all equally likely.

    ``random()`` is the one method whose values Python promises to keep, hence not ``choice()``.
    """
    return items[int(rng.random() * len(items))]


def pick_index(rng: random.Random, cumulative: Sequence[float]) -> int:
    """An index, as likely as its weight, of weights that are added up; by ``random()`` alone, like :func:`pick`."""
    return min(bisect(cumulative, rng.random() * cumulative[-1]), len(cumulative) - 1)


def distinct(
    draws: Iterator[T],
    *,
    key: Callable[[T], str],
    size: int,
    split: str,
    taken: dict[str, str],
    dropped: Counter[str],
) -> Iterator[T]:
    """Yield ``size`` draws whose keys are new.

    Args:
        draws: an endless iterator of random items.
        key: what makes two items the same.
        size: number of items to yield.
        split: name of the split that is being drawn.
        taken: the split in which each key seen so far lies; new keys are added.
        dropped: counts the repetitions under a reason.

    Raises:
        PrepareError: :data:`TRIES_IN_A_ROW` draws in a row were repetitions.
    """
    for drawn in range(size):
        for _ in range(TRIES_IN_A_ROW):
            item = next(draws)
            if key(item) not in taken:
                break
            dropped[f"already in {taken[key(item)]}"] += 1
        else:
            raise PrepareError(
                f"--{split}-size {size} is too large: {drawn} sentences were found, then {TRIES_IN_A_ROW} "
                "draws in a row gave no new one"
            )
        taken[key(item)] = split
        yield item
