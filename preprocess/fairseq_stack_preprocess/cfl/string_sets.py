"""Strings with their probabilities, and their files. All in nats.

- ``text/SPLIT.txt``: one string per line, its symbols separated by spaces;
- ``text/SPLIT.logp``: for each line log p(string | its length);
- ``text/SPLIT.nll``: for each line -log p(string), the share of its length included: what the symbols and the end cost;
- ``lower_bound.json``: for each split the cross-entropy of p itself, see :func:`lower_bound`.

A line of ``.logp`` and ``.nll`` is one number, with all digits of its double.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..layout import SUFFIX
from ..text.output import write_lines
from .languages import Word

DIGITS = 9
"""Digits after the point of rates in ``lower_bound.json``."""


@dataclass(frozen=True)
class StringSet:
    """The strings of one split.

    Attributes:
        lengths: the lengths that the set is drawn from, uniformly.
        strings: the strings.
        log_probabilities: for each string log p(string | its length) in nats.
    """

    lengths: Sequence[int]
    strings: Sequence[Word]
    log_probabilities: Sequence[float]

    def bounds(self) -> list[float]:
        """For each string -log p(string) in nats, including the share of its length."""
        cost_of_length = float(Decimal(len(self.lengths)).ln())  # unlike math.log, the same on every machine
        return [cost_of_length - value for value in self.log_probabilities]


def counts_of(strings: Sequence[Word]) -> dict[str, Any]:
    """Counts of a set for the manifest; symbols do not count the end of a string."""
    return {"strings": len(strings), "distinct_strings": len(set(strings)), "symbols": sum(map(len, strings))}


def write_strings(text: Path, split: str, strings: StringSet) -> None:
    """Write ``.txt``, ``.logp`` and ``.nll`` of a split into the folder ``text``."""
    write_lines(text / f"{split}.{SUFFIX}", map(" ".join, strings.strings))
    write_lines(text / f"{split}.logp", map(repr, strings.log_probabilities))
    write_lines(text / f"{split}.nll", map(repr, strings.bounds()))


def lower_bound(strings: StringSet) -> dict[str, Any]:
    """The cross-entropy of p itself on a set.

    ``..._with_eos`` counts the end of each string as a token, as the papers of 2022 to 2024 do; ``..._without_eos``
    does not, as the paper of 2020. Both have the cost of the length, since a string's end says it. In
    ``by_length``, for the strings of one length, p is that given the length: nothing is paid for it.
    """
    by_length: defaultdict[int, list[float]] = defaultdict(list)
    for string, value in zip(strings.strings, strings.log_probabilities, strict=True):
        by_length[len(string)].append(-value)
    return {
        "lengths": len(strings.lengths),
        **_rates(strings.bounds(), sum(map(len, strings.strings))),
        "by_length": {
            str(length): _rates(values, length * len(values)) for length, values in sorted(by_length.items())
        },
    }


def _rates(bounds: Sequence[float], symbols: int) -> dict[str, Any]:
    """Sum and rates of -log p of some strings that have ``symbols`` symbols in all, the same on every machine."""
    nats = math.fsum(bounds)
    rates: dict[str, Any] = {"strings": len(bounds), "nats": nats}
    for name, tokens in (("with_eos", symbols + len(bounds)), ("without_eos", symbols)):
        rate = Decimal(nats) / tokens
        rates |= {
            f"tokens_{name}": tokens,
            f"nats_per_token_{name}": float(round(rate, DIGITS)),
            f"bits_per_token_{name}": float(round(rate / Decimal(2).ln(), DIGITS)),
            f"perplexity_{name}": float(round(rate.exp(), DIGITS)),
        }
    return rates
