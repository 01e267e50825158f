"""Weighted synchronous context-free grammars: exact sampling by nesting depth.

A rule rewrites a nonterminal on two sides at once, ``A -> <source, target>``. Both sides hold the same linked
nonterminals, each exactly once, in any order, and any terminals. The *nesting* of a derivation is the
maximum number of nesting nonterminals (for example relative clauses) on a path from its root.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..text.splits import pick_index

Side = tuple[str | int, ...]
"""One side of a rule: a terminal is a string, a linked nonterminal the index of its child."""


@dataclass(frozen=True)
class Rule:
    """``left -> <source, target>`` with the nonterminals ``children`` and a weight > 0."""

    left: str
    children: tuple[str, ...]
    source: Side
    target: Side
    weight: float


@dataclass(frozen=True)
class Derivation:
    """A derivation tree: a rule and a derivation for each of its children."""

    rule: Rule
    children: tuple[Derivation, ...]


@dataclass(frozen=True)
class SentencePair:
    """What a derivation yields.

    Attributes:
        source: the words of the source side.
        target: the words of the target side.
        alignment: pairs (source position, target position) of words that one lexical rule produced, sorted.
        nesting: the derivation's nesting.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]
    nesting: int


class SynchronousGrammar:
    """A weighted synchronous grammar whose recursion goes through nesting nonterminals only.

    The weights of the rules with one left side are normalised to probabilities; a derivation's probability is
    the product of its rules' probabilities. Since all recursion passes through a nesting nonterminal, there are
    finitely many derivations of each nesting, and their total probability is computed exactly.

    Args:
        rules: the rules.
        start: the nonterminal that derivations start from.
        nesting: the nonterminals that count as one level of nesting.
    """

    def __init__(self, rules: Iterable[Rule], start: str, nesting: Collection[str]) -> None:
        by_left: defaultdict[str, list[Rule]] = defaultdict(list)
        for rule in rules:
            by_left[rule.left].append(rule)
        self.rules: Mapping[str, Sequence[Rule]] = {left: tuple(group) for left, group in by_left.items()}
        self.start = start
        self.nesting = frozenset(nesting)
        self._total = {left: math.fsum(rule.weight for rule in group) for left, group in self.rules.items()}
        self._exact: dict[tuple[str, int], float] = {}
        self._choices: dict[tuple[str, int, bool], tuple[list[float], Sequence[Rule]]] = {}

    def exact(self, symbol: str, depth: int) -> float:
        """The probability that ``symbol`` derives a tree (below itself) of nesting exactly ``depth``."""
        if depth < 0:
            return 0.0
        key = symbol, depth
        if key not in self._exact:
            weights = (rule.weight * math.fsum(self._first_reaches(rule, depth)) for rule in self.rules[symbol])
            self._exact[key] = math.fsum(weights) / self._total[symbol]
        return self._exact[key]

    def at_most(self, symbol: str, depth: int) -> float:
        """The probability that ``symbol`` derives a tree (below itself) of nesting at most ``depth``."""
        return math.fsum(self.exact(symbol, d) for d in range(depth + 1))

    def _first_reaches(self, rule: Rule, depth: int) -> list[float]:
        """Probabilities of the ways in which a rule reaches nesting ``depth``: the first child to reach it is
        child i.

        A rule without children has nesting 0 in one way.
        """
        if not rule.children:
            return [1.0 if depth == 0 else 0.0]
        below = [self.at_most(child, self._inner(child, depth - 1)) for child in rule.children]
        exactly = [self.exact(child, self._inner(child, depth)) for child in rule.children]
        up_to = [self.at_most(child, self._inner(child, depth)) for child in rule.children]
        return [math.prod(below[:i]) * exactly[i] * math.prod(up_to[i + 1 :]) for i in range(len(rule.children))]

    def _inner(self, child: str, depth: int) -> int:
        """The nesting that is left below ``child`` when the nesting including it is ``depth``."""
        return depth - 1 if child in self.nesting else depth

    def sample(self, rng: random.Random, depth: int) -> Derivation:
        """Draw a derivation from the grammar's distribution, given that its nesting is exactly ``depth``."""
        return self._sample(rng, self.start, depth, exactly=True)

    def _sample(self, rng: random.Random, symbol: str, depth: int, *, exactly: bool) -> Derivation:
        rule = self._choose_rule(rng, symbol, depth, exactly)
        first = -1
        if exactly and rule.children:
            first = pick_index(rng, list(itertools.accumulate(self._first_reaches(rule, depth))))
        children = []
        for i, child in enumerate(rule.children):
            bound = depth - 1 if i < first else depth
            children.append(self._sample(rng, child, self._inner(child, bound), exactly=i == first))
        return Derivation(rule, tuple(children))

    def _choose_rule(self, rng: random.Random, symbol: str, depth: int, exactly: bool) -> Rule:
        key = symbol, depth, exactly
        if key not in self._choices:
            rules = self.rules[symbol]
            depths = [depth] if exactly else range(depth + 1)
            weights = [r.weight * math.fsum(sum(self._first_reaches(r, d)) for d in depths) for r in rules]
            self._choices[key] = list(itertools.accumulate(weights)), rules
        cumulative, rules = self._choices[key]
        return rules[pick_index(rng, cumulative)]

    def pair(self, derivation: Derivation) -> SentencePair:
        """The two sentences that a derivation yields, with their word alignment."""
        source = list(_words(derivation, (), lambda rule: rule.source))
        target = list(_words(derivation, (), lambda rule: rule.target))
        positions: defaultdict[Address | None, list[int]] = defaultdict(list)
        for position, (_, address) in enumerate(target):
            positions[address].append(position)
        return SentencePair(
            source=tuple(word for word, _ in source),
            target=tuple(word for word, _ in target),
            alignment=tuple((i, j) for i, (_, a) in enumerate(source) if a is not None for j in positions[a]),
            nesting=self.depth(derivation),
        )

    def depth(self, derivation: Derivation) -> int:
        """The nesting of a derivation."""
        inner = (self.depth(child) + (child.rule.left in self.nesting) for child in derivation.children)
        return max(inner, default=0)


Address = tuple[int, ...]
"""The place of a node in a derivation: the indices of the children on the path from the root."""


def _words(node: Derivation, address: Address, side: Callable[[Rule], Side]) -> Iterator[tuple[str, Address | None]]:
    """The words of one side, each with its node's address if the node's rule is lexical (has no children)."""
    for item in side(node.rule):
        if isinstance(item, int):
            yield from _words(node.children[item], (*address, item), side)
        else:
            yield item, None if node.children else address
