"""Which pairs of sentences are dropped, why, and how the rest is sampled."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .wmt_markup import Pair

EMPTY = "a side is empty"
LONE_PERIOD = "a side is a period"
RATIO = "length ratio"
TOO_LONG = "too long"
NOT_SAMPLED = "not in the sample"


@dataclass(frozen=True)
class PairFilter:
    """The reasons to drop a pair, in the order of DuSell & Chiang (2024): the first one counts.

    Attributes:
        empty: a side is empty except for white space.
        lone_period: a side is a single period except for white space.
        max_ratio: maximum ratio of the sides' lengths in characters; None for any.
        max_chars: maximum length of either side in characters; None for any.
    """

    empty: bool = False
    lone_period: bool = False
    max_ratio: float | None = None
    max_chars: int | None = None

    def reason(self, source: str, target: str) -> str | None:
        """Why a pair is dropped, or None. Lengths count white space at the ends, as the authors' do."""
        stripped = source.strip(), target.strip()
        if self.empty and not all(stripped):
            return EMPTY
        if self.lone_period and "." in stripped:
            return LONE_PERIOD
        short, long = sorted((len(source), len(target)))
        if self.max_ratio is not None and long > self.max_ratio * short:
            return RATIO
        if self.max_chars is not None and long > self.max_chars:
            return TOO_LONG
        return None


def draw_sample(pairs: Callable[[], Iterable[Pair]], size: int, seed: int) -> tuple[list[Pair], int]:
    """``random.Random(seed).sample(list(pairs), size)``, the rule of DuSell & Chiang (2024), in little memory.

    The pairs are read twice: to count them, and to take those that the sample names.

    Args:
        pairs: gives the same pairs each time it is called.
        size: of the sample; if there are fewer pairs, all are taken.
        seed: of the random numbers.

    Returns:
        The sample, in the order in which it was drawn, and the number of pairs.
    """
    count = sum(1 for _ in pairs())
    indices = random.Random(seed).sample(range(count), min(size, count))
    wanted = set(indices)
    taken = {index: pair for index, pair in enumerate(pairs()) if index in wanted}
    return [taken[index] for index in indices], count
