"""Normal forms that make a grammar computable: at most two symbols on a right side, no empty and no unary rules.

:func:`binarised`, :func:`without_epsilon` and :func:`without_unary` keep the probability of every string that is not
empty, up to one factor: the probability that the grammar's string is not empty.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..text.pcfg import PCFG, Nonterminal, Rule, Symbol

GREATEST_NUMBER_OF_SWEEPS = 100_000
"""How often probabilities of the empty string are improved before their series counts as divergent."""

MOST_RULES = 200_000
"""How many rules there may be without unary rules, and how many pairs of nonterminals that chains of them link."""

TOO_LONG_CHAINS = "the unary rules (X -> Y) form chains that stand for more than"


def binarised(grammar: PCFG) -> PCFG:
    """The grammar with at most two symbols on each right side.

    Longer right sides ``X Y Z`` become ``X [Y Z]``, with a nonterminal ``[Y Z]`` that derives only this;
    rules with the same end share it.
    """
    rules = []
    rests: dict[tuple[Symbol, Symbol], Nonterminal] = {}
    for rule in grammar.rules:
        right = rule.right
        if len(right) > 2:
            right = (right[0], _rest(rule.right[1:], rests))
        rules.append(Rule(rule.left, right, rule.weight))
    rules += [Rule(left, right, 1.0) for right, left in rests.items()]
    return PCFG(rules, grammar.start, normalise=False)


def without_epsilon(grammar: PCFG) -> PCFG:
    """The grammar of the same strings except the empty one, without empty right sides.

    Where nonterminals of a right side can be empty, each choice of those that are not gives a rule. A
    nonterminal then stands for its strings that are not empty: with e(X) the probability that X is
    empty, those rules have the factor e(X) or 1 - e(X) for each X on the right, and 1 / (1 - e(left)).
    This is the limit of replacing one empty rule after the other.

    Raises:
        ValueError: the grammar has at most the empty string; or the probabilities of the empty string
            are a series that does not converge in double precision.
    """
    used = _reached(grammar.rules, grammar.start)
    empty = _empty_probabilities(used)
    rules = []
    for rule in used:
        for right, factor in _kept(rule.right, empty):
            weight = rule.weight * factor / (1 - empty[rule.left]) if right and empty[rule.left] < 1 else 0
            if weight > 0:
                rules.append(Rule(rule.left, right, weight))
    return _productive(rules, grammar.start)


def without_unary_start(grammar: PCFG) -> PCFG:
    """The grammar without derivations whose first rule is unary (its right side is one nonterminal).

    The first rule is drawn from the others, elsewhere the start symbol is as it was. This changes the
    distribution and may leave out strings: it is what the papers' data have. A grammar without such
    rules is returned itself.

    Raises:
        ValueError: all rules of the start symbol are unary.
    """
    first = Nonterminal(f"{grammar.start.name} first")
    all_rules = [rule for rule in grammar.rules if rule.left == grammar.start]
    others = [rule for rule in all_rules if not _is_unary(rule.right)]
    if len(others) == len(all_rules):
        return grammar
    if not others:
        raise ValueError(f"all rules of the start symbol {grammar.start.name} are unary")
    total = math.fsum(rule.weight for rule in others)
    rules = [Rule(first, rule.right, rule.weight / total) for rule in others]
    return _productive([*rules, *grammar.rules], first)


def without_unary(grammar: PCFG) -> PCFG:
    """The grammar of the same strings without right sides that are one nonterminal.

    The weight of ``X -> right`` becomes the sum over nonterminals Y of the weight of all chains of unary rules
    from X to Y (including the empty chain if X = Y) times the weight of ``Y -> right``.

    Raises:
        ValueError: the grammar has no string, a cycle of unary rules is never left, or there would be more than
            :data:`MOST_RULES` rules.
    """
    chains: dict[Nonterminal, dict[Nonterminal, float]] = {left: {} for left in grammar.nonterminals}
    others: dict[Nonterminal, list[Rule]] = {left: [] for left in grammar.nonterminals}
    for rule in grammar.rules:
        child = rule.right[0] if _is_unary(rule.right) else None
        if isinstance(child, Nonterminal):
            chains[rule.left][child] = rule.weight
        else:
            others[rule.left].append(rule)
    sums = _sums_of_chains(chains)
    if sum(len(others[child]) for weights in sums.values() for child in weights) > MOST_RULES:
        raise ValueError(f"{TOO_LONG_CHAINS} {MOST_RULES:,} rules")
    rules = []
    for left, weights in sums.items():
        rules += [Rule(left, r.right, r.weight * w) for child, w in weights.items() for r in others[child]]
    return _productive(rules, grammar.start)


def _is_unary(right: Sequence[Symbol]) -> bool:
    return len(right) == 1 and isinstance(right[0], Nonterminal)


def _empty_probabilities(rules: Sequence[Rule]) -> Mapping[Nonterminal, float]:
    """For each nonterminal the probability that it derives the empty string: the least solution of
    e(X) = sum of weight * product of e(right), over the rules whose right sides have no terminal."""
    empty = {rule.left: 0.0 for rule in rules}
    sides: dict[Nonterminal, list[Rule]] = {left: [] for left in empty}
    for rule in rules:
        if not any(isinstance(symbol, str) for symbol in rule.right):
            sides[rule.left].append(rule)
    for _ in range(GREATEST_NUMBER_OF_SWEEPS):
        change = 0.0
        for left, group in sides.items():
            value = min(1.0, math.fsum(rule.weight * _empty_probability(rule.right, empty) for rule in group))
            change = max(change, value - empty[left])
            empty[left] = max(value, empty[left])
        if change <= 1e-18:
            return empty
    raise ValueError("the probabilities of the empty string do not converge; change the weights of recursive rules")


def _empty_probability(right: Iterable[Symbol], empty: Mapping[Nonterminal, float]) -> float:
    """The probability that all symbols of a right side are empty."""
    return math.prod(empty[symbol] if isinstance(symbol, Nonterminal) else 0.0 for symbol in right)


def _rest(symbols: tuple[Symbol, ...], rests: dict[tuple[Symbol, Symbol], Nonterminal]) -> Nonterminal:
    """The nonterminal for the end ``symbols`` of a right side.

    It and the nonterminals for its own ends are added to ``rests``, the longest first, each with the pair that it
    becomes: its first symbol and the nonterminal for the others. Its name contains a space, unlike any name in a text.
    """
    second = symbols[-1]
    new: list[tuple[tuple[Symbol, Symbol], Nonterminal]] = []
    for first in reversed(symbols[:-1]):
        pair = first, second
        if pair in rests:
            second = rests[pair]
        else:
            second = Nonterminal(f"[rest {len(rests) + len(new)}]")
            new.append((pair, second))
    rests.update(reversed(new))
    assert isinstance(second, Nonterminal)
    return second


def _kept(right: Sequence[Symbol], empty: Mapping[Nonterminal, float]) -> Iterator[tuple[tuple[Symbol, ...], float]]:
    """The right sides that remain when each nonterminal is either empty or not, with their probabilities."""
    choices = []
    for symbol in right:
        probability = empty[symbol] if isinstance(symbol, Nonterminal) else 0.0
        kept: tuple[tuple[Symbol, ...], float] = (symbol,), 1 - probability
        choices.append([kept, ((), probability)] if probability > 0 else [kept])
    for choice in itertools.product(*choices):
        yield tuple(itertools.chain.from_iterable(part for part, _ in choice)), math.prod(p for _, p in choice)


def _sums_of_chains(
    edges: Mapping[Nonterminal, Mapping[Nonterminal, float]],
) -> Mapping[Nonterminal, Mapping[Nonterminal, float]]:
    """For each pair of nodes the sum, over all paths between them, of the product of the edges' weights.

    Nodes are eliminated one by one (Kleene's algorithm); the empty path from a node to itself has weight 1.
    """
    sums = {node: dict(targets) for node, targets in edges.items()}
    for middle in edges:
        if sum(map(len, sums.values())) > MOST_RULES:
            raise ValueError(f"{TOO_LONG_CHAINS} {MOST_RULES:,} pairs of nonterminals")
        loop = sums[middle].get(middle, 0.0)
        if loop >= 1:
            raise ValueError(f"the unary rules of {middle.name} form a cycle that is never left")
        star = 1 / (1 - loop)
        through = dict(sums[middle])
        if not through:
            continue
        for targets in sums.values():
            if middle in targets:
                first = targets[middle] * star
                for last, weight in through.items():
                    targets[last] = targets.get(last, 0.0) + first * weight
    for node, targets in sums.items():
        targets[node] = targets.get(node, 0.0) + 1
    return sums


def _productive(rules: Sequence[Rule], start: Nonterminal) -> PCFG:
    """The grammar of the rules that take part in a derivation of a string.

    Raises:
        ValueError: no string can be derived.
    """
    productive = _productive_nonterminals(rules)
    if start not in productive:
        raise ValueError(f"no string can be derived from {start.name}, except perhaps the empty one")
    rules = [rule for rule in rules if rule.left in productive and _is_within(rule.right, productive)]
    return PCFG(_reached(rules, start), start, normalise=False)


def _productive_nonterminals(rules: Sequence[Rule]) -> set[Nonterminal]:
    """The nonterminals from which a string of terminals can be derived."""
    waiting: defaultdict[Nonterminal, list[int]] = defaultdict(list)  # for each nonterminal, the rules it occurs in
    missing = []
    for number, rule in enumerate(rules):
        unknown = {symbol for symbol in rule.right if isinstance(symbol, Nonterminal)}
        missing.append(len(unknown))
        for symbol in unknown:
            waiting[symbol].append(number)
    productive: set[Nonterminal] = set()
    new = [rule.left for rule, count in zip(rules, missing, strict=True) if not count]
    while new:
        symbol = new.pop()
        if symbol in productive:
            continue
        productive.add(symbol)
        for number in waiting[symbol]:
            missing[number] -= 1
            if not missing[number]:
                new.append(rules[number].left)
    return productive


def _reached(rules: Sequence[Rule], start: Nonterminal) -> list[Rule]:
    """The rules of the nonterminals that occur in derivations from ``start``."""
    children: defaultdict[Nonterminal, set[Nonterminal]] = defaultdict(set)
    for rule in rules:
        children[rule.left] |= {symbol for symbol in rule.right if isinstance(symbol, Nonterminal)}
    reached = {start}
    new = [start]
    while new:
        unseen = children[new.pop()] - reached
        reached |= unseen
        new += unseen
    return [rule for rule in rules if rule.left in reached]


def _is_within(right: Iterable[Symbol], nonterminals: set[Nonterminal]) -> bool:
    return all(isinstance(symbol, str) or symbol in nonterminals for symbol in right)
