"""The six test sets that Hao et al. (2018) drew, from their seeds: 1000 pairs of each task, in their order.

Their programs ran under Python 2: see :mod:`.python2`. Test strings of reversal, XOR, delayed XOR and formula are the
first 1000 of the distinct ones among 2000, in the order of a set, which was then shuffled except for formula.
Parentheses and agreement were drawn one after the other from the same random numbers, and are as they were drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial

from . import strings
from .grammars import AGREEMENT_TASK, FORMULA_TASK, PARENTHESIS_TASK
from .pairs import Pair, Source
from .python2 import hash_texts, set_order, shuffle
from .strings import Lengths

SIZE = 1000
DRAWN = 2000
PARENTHESIS_DEPTH, FORMULA_DEPTH, AGREEMENT_DEPTH = 12, 7, 32
REVERSAL_LENGTHS, BITS = Lengths(1, 24, 20.0, 4.0), 24

EXPORTED_BITS = BITS - 1
"""The authors' export cut the last bit of each string of the two XOR tasks, and of its target."""


def parenthesis() -> list[Pair]:
    """The test set of parenthesis."""
    return _derived(PARENTHESIS_TASK.trees(PARENTHESIS_DEPTH), random.Random(552))


def agreement() -> list[Pair]:
    """The test set of agreement."""
    rng = random.Random(552)
    _derived(PARENTHESIS_TASK.trees(PARENTHESIS_DEPTH), rng)
    return _derived(AGREEMENT_TASK.trees(AGREEMENT_DEPTH), rng)


def _derived(source: Source, rng: random.Random) -> list[Pair]:
    return [source.draw(rng) for _ in range(SIZE)]


def formula() -> list[Pair]:
    """The test set of formula."""
    derivations, rng = FORMULA_TASK.derivations, random.Random(4968)
    drawn = [derivations.draw(rng, FORMULA_DEPTH) for _ in range(DRAWN)]
    return [FORMULA_TASK.pair(string) for string in set_order(drawn, hash_texts)[:SIZE]]


def reversal() -> list[Pair]:
    """The test set of reversal."""
    return _shuffled(strings.reversal(REVERSAL_LENGTHS, symbols=2), seed=8597)


def xor(source: Callable[[Lengths], Source], seed: int) -> list[Pair]:
    """The test set of XOR or of delayed XOR."""
    return _shuffled(source(Lengths(BITS, BITS)), seed, EXPORTED_BITS)


def _shuffled(source: Source, seed: int, exported: int | None = None) -> list[Pair]:
    """The first pairs of a shuffled set of lines; ``exported`` is the number of symbols in a line, None for all."""
    rng = random.Random(seed)
    drawn = [source.draw(rng) for _ in range(DRAWN)]
    blank = source.alphabet.blank
    pairs = set_order((Pair(p.input[:exported], p.target[:exported]) for p in drawn), partial(_hash_of_line, blank))
    shuffle(rng, pairs)
    return pairs[:SIZE]


def _hash_of_line(blank: str, pair: Pair) -> int:
    """The hash of (input, target) as in the authors' files: texts without trailing blanks."""
    return hash_texts(" ".join(word).rstrip(f" {blank}") for word in (pair.input, pair.target))


TEST_SETS: Mapping[str, Callable[[], list[Pair]]] = {
    "reversal": reversal,
    "xor": partial(xor, strings.xor, 8301),
    "delayed_xor": partial(xor, strings.delayed_xor, 5212),
    "parenthesis": parenthesis,
    "formula": formula,
    "agreement": agreement,
}
"""The test sets by task."""
