"""Strings w#w^R whose w has a pattern, so that the order in which a stack returns its symbols is visible at a glance.

The patterns are those of the code of DuSell and Chiang (2023).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

MARK = "#"
Pattern = Literal["rainbow", "barcode", "increasing-barcode"]


def _rainbow(symbols: Sequence[str]) -> Iterator[str]:
    return itertools.cycle(symbols)


def _barcode(symbols: Sequence[str]) -> Iterator[str]:
    return itertools.cycle(symbol for times, symbol in enumerate(symbols, start=1) for _ in range(times))


def _increasing_barcode(symbols: Sequence[str]) -> Iterator[str]:
    return (symbol for times in itertools.count(1) for symbol in symbols for _ in range(times))


PATTERNS: dict[Pattern, Callable[[Sequence[str]], Iterator[str]]] = {
    "rainbow": _rainbow,
    "barcode": _barcode,
    "increasing-barcode": _increasing_barcode,
}
"""What w begins with: all symbols in turn; the first once, the second twice, ...; or all once, all twice, ..."""


def marked_reversal(pattern: Pattern, symbols: Sequence[str], length: int) -> str:
    """The string w#w^R, its symbols separated by spaces, for a w of ``length`` symbols.

    Raises:
        ValueError: there are no symbols.
    """
    if not symbols:
        raise ValueError("expected at least one symbol")
    w = list(itertools.islice(PATTERNS[pattern](symbols), length))
    return " ".join([*w, MARK, *reversed(w)])
