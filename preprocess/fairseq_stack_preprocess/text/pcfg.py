"""Probabilistic context-free grammars."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, order=True)
class Nonterminal:
    """A symbol that rules rewrite; terminals are plain strings."""

    name: str


Symbol = str | Nonterminal


@dataclass(frozen=True)
class Rule:
    """``left -> right`` with a weight > 0; an empty ``right`` is the empty string."""

    left: Nonterminal
    right: tuple[Symbol, ...]
    weight: float

    def __str__(self) -> str:
        right = " ".join(format_symbol(symbol) for symbol in self.right) or "''"
        return f"{self.left.name} -> {right} [{self.weight!r}]"


class PCFG:
    """A probabilistic context-free grammar.

    The probability of a derivation is the product of its rules' weights. The probability of a string is the sum
    over its derivations.

    Args:
        rules: the rules. Equal rules are joined and their weights added.
        start: the nonterminal that derivations start from.
        normalise: divide the weights of the rules with one left side by their sum.
    """

    def __init__(self, rules: Iterable[Rule], start: Nonterminal, *, normalise: bool = True) -> None:
        weights: defaultdict[Nonterminal, defaultdict[tuple[Symbol, ...], float]] = defaultdict(
            lambda: defaultdict(float)
        )
        for rule in rules:
            weights[rule.left][rule.right] += rule.weight
        self.start = start
        self._weights: Mapping[Nonterminal, Mapping[tuple[Symbol, ...], float]] = (
            {left: _normalised(sides) for left, sides in weights.items()} if normalise else weights
        )

    @cached_property
    def rules(self) -> Sequence[Rule]:
        """The rules, grouped by left side, in the order of their first occurrences."""
        return [Rule(left, right, weight) for left, sides in self._weights.items() for right, weight in sides.items()]

    @property
    def nonterminals(self) -> Sequence[Nonterminal]:
        """The nonterminals, in the order of their first rules."""
        return list(self._weights)

    @cached_property
    def terminals(self) -> Sequence[str]:
        """The terminals, in the order of their first occurrences."""
        return list(dict.fromkeys(symbol for rule in self.rules for symbol in rule.right if isinstance(symbol, str)))


def format_symbol(symbol: Symbol) -> str:
    """A symbol in the notation of :mod:`.notation`: terminals in quotation marks."""
    if isinstance(symbol, Nonterminal):
        return symbol.name
    return f'"{symbol}"' if "'" in symbol else f"'{symbol}'"


def _normalised(sides: Mapping[tuple[Symbol, ...], float]) -> Mapping[tuple[Symbol, ...], float]:
    total = math.fsum(sides.values())
    return {right: weight / total for right, weight in sides.items()}
