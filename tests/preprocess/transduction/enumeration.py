"""All derivations of a small grammar, found by writing them out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from functools import cache

from fairseq_stack_preprocess.text.pcfg import PCFG, Nonterminal, Symbol
from fairseq_stack_preprocess.transduction.pairs import Word


def strings_of_depth(grammar: PCFG, depth: int) -> Counter[Word]:
    """For each string the number of its derivations whose longest path has at most ``depth`` nodes."""

    @cache
    def below(symbol: Symbol, nodes: int) -> Counter[Word]:
        if not isinstance(symbol, Nonterminal):
            return Counter({(symbol,): 1})
        results = Counter[Word]()
        for rule in grammar.rules if nodes > 1 else ():
            if rule.left == symbol:
                for parts in itertools.product(*(below(item, nodes - 1).items() for item in rule.right)):
                    word = tuple(itertools.chain.from_iterable(word for word, _ in parts))
                    results[word] += math.prod(ways for _, ways in parts)
        return results

    return below(grammar.start, depth)
