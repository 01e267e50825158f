"""Rule tables, exact probabilities by nesting, and sampling, against enumeration on a small grammar."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable

import pytest

from fairseq_stack_preprocess.nested.rule_table import expand_table
from fairseq_stack_preprocess.nested.synchronous_grammar import Derivation, Rule, SynchronousGrammar

TABLE = """
# S has up to two nesting children; A is a lexical rule
2 | S    | A#1 R#2 R#3 | #3 #1 #2
3 | S    | A#1         | #1
1 | S    | R#1 x       | y #1
1 | R    | a S#1 b     | c #1
2 | R    | A#1         | #1
1 | A    | p           | q
4 | A    | r           | s t
"""


def toy() -> SynchronousGrammar:
    return SynchronousGrammar(expand_table(TABLE, {}, {}), "S", {"R"})


def enumerate_derivations(grammar: SynchronousGrammar, symbol: str, depth: int) -> list[tuple[Derivation, float]]:
    """All derivations of nesting at most ``depth``, by brute force, with their probabilities."""
    total = sum(rule.weight for rule in grammar.rules[symbol])
    results = []
    for rule in grammar.rules[symbol]:
        inner = [depth - (child in grammar.nesting) for child in rule.children]
        if any(d < 0 for d in inner):
            continue
        options = [enumerate_derivations(grammar, child, d) for child, d in zip(rule.children, inner, strict=True)]
        for choice in itertools.product(*options):
            children = tuple(derivation for derivation, _ in choice)
            results.append((Derivation(rule, children), rule.weight / total * math.prod(p for _, p in choice)))
    return results


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_exact_probability_is_that_of_all_derivations(depth: int) -> None:
    grammar = toy()
    derivations = enumerate_derivations(grammar, "S", depth)
    assert grammar.at_most("S", depth) == pytest.approx(math.fsum(p for _, p in derivations), rel=1e-12)
    exact = math.fsum(p for derivation, p in derivations if grammar.depth(derivation) == depth)
    assert grammar.exact("S", depth) == pytest.approx(exact, rel=1e-12)


def shape(grammar: SynchronousGrammar, derivation: Derivation) -> Hashable:
    """The rule at the root and the nesting of each of its children."""
    return derivation.rule, tuple(grammar.depth(child) for child in derivation.children)


def itself(grammar: SynchronousGrammar, derivation: Derivation) -> Hashable:
    return derivation


@pytest.mark.parametrize(("depth", "key_of"), [(0, itself), (2, itself), (2, shape)])
def test_samples_follow_the_distribution_given_the_depth(
    depth: int, key_of: Callable[[SynchronousGrammar, Derivation], Hashable]
) -> None:
    grammar, rng, draws = toy(), random.Random(3), 5000
    probabilities: defaultdict[Hashable, float] = defaultdict(float)
    for derivation, p in enumerate_derivations(grammar, "S", depth):
        if grammar.depth(derivation) == depth:
            probabilities[key_of(grammar, derivation)] += p / grammar.exact("S", depth)
    counts = Counter(key_of(grammar, grammar.sample(rng, depth)) for _ in range(draws))
    assert set(counts) <= set(probabilities)
    for key, p in sorted(probabilities.items(), key=lambda item: -item[1])[:50]:
        assert abs(counts[key] - draws * p) < 5 * math.sqrt(draws * p * (1 - p)) + 1


def test_features_are_expanded_alike_on_both_sides_and_share_the_weight() -> None:
    table = """
    6 | X[G] | Y[G N]#1 Y[H N]#2 | #2 #1 | unequal
    1 | Y[G N] | y | z
    """
    domains = {"G": ("m", "f"), "H": ("m", "f"), "N": ("sg", "pl")}
    rules = list(expand_table(table, domains, {"unequal": lambda f: f["G"] != f["H"]}))
    assert [rule for rule in rules if rule.left == "X[m]"] == [
        Rule("X[m]", ("Y[m sg]", "Y[f sg]"), (0, 1), (1, 0), 3.0),
        Rule("X[m]", ("Y[m pl]", "Y[f pl]"), (0, 1), (1, 0), 3.0),
    ]
    assert len(rules) == 4 + 4
