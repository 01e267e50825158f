"""Probabilities of all short strings of a grammar, from its equations alone: what the tests compare with."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

from fairseq_stack_preprocess.cfl.languages import Word
from fairseq_stack_preprocess.text.pcfg import PCFG, Nonterminal, Rule, Symbol

Strings = dict[Word, float]

SWEEPS = 3000

# Every kind of rule: empty, unary, a unary cycle, long, nullable at several places, useless, ambiguous.
EVERYTHING = """
S -> S T U [1] | T [2] | 'a' [1] | '' [1]
T -> U [1] | S [1] | T 'b' T [1] | 'a' 'b' [3]
U -> T [1] | '' [2] | 'b' [2] | Useless [1]
Useless -> Useless 'c'
"""


class NotConverged(Exception):
    """The equations need more sweeps."""


def short_strings(grammar: PCFG, greatest: int, *, tolerance: float = 1e-15) -> Strings:
    """The probability of every string (the empty one too) of at most ``greatest`` symbols.

    The equations p(X => w) = sum over rules X -> Y1 ... Yn and over divisions of w of weight * product of p(Yi => wi)
    are iterated from zero, with all rules as they are: nothing is removed or made binary.
    """
    bounds = _greatest_lengths(grammar, greatest)
    values: dict[Nonterminal, Strings] = {left: {} for left in grammar.nonterminals}
    for _ in range(SWEEPS):
        change = 0.0
        for left in grammar.nonterminals:
            new: defaultdict[Word, float] = defaultdict(float)
            for rule in grammar.rules:
                if rule.left == left:
                    for word, probability in _expand(rule, values, bounds[left]).items():
                        new[word] += probability
            for word, probability in new.items():
                change = max(change, probability - values[left].get(word, 0.0))
            values[left] = dict(new)
        if change <= tolerance:
            return values[grammar.start]
    raise NotConverged


def _expand(rule: Rule, values: dict[Nonterminal, Strings], greatest: int) -> Strings:
    strings: Strings = {(): rule.weight}
    for symbol in rule.right:
        children = {(symbol,): 1.0} if isinstance(symbol, str) else values[symbol]
        longer: defaultdict[Word, float] = defaultdict(float)
        for (first, p), (second, q) in itertools.product(strings.items(), children.items()):
            if len(first) + len(second) <= greatest:
                longer[first + second] += p * q
        strings = longer
    return strings


def _greatest_lengths(grammar: PCFG, greatest: int) -> dict[Nonterminal, int]:
    """How long a nonterminal's string can be at most if that of the start symbol has at most ``greatest`` symbols."""
    least: dict[Symbol, float] = defaultdict(lambda: math.inf, dict.fromkeys(grammar.terminals, 1.0))
    bounds = dict.fromkeys(grammar.nonterminals, -1)
    bounds[grammar.start] = greatest
    for _ in grammar.nonterminals:
        for rule in grammar.rules:
            least[rule.left] = min(least[rule.left], sum(least[symbol] for symbol in rule.right))
    for _ in grammar.nonterminals:
        for rule in grammar.rules:
            rest = bounds[rule.left] - sum(least[symbol] for symbol in rule.right)
            if rest >= 0:
                for symbol in rule.right:
                    if isinstance(symbol, Nonterminal):
                        bounds[symbol] = max(bounds[symbol], int(rest + least[symbol]))
    return bounds
