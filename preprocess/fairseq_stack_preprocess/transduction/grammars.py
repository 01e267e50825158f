"""Tasks on strings of a grammar (Hao et al. 2018, Sections 4.3 to 4.5): parentheses, formulas and agreement.

The grammars are in the notation of :mod:`.notation`. A string is drawn by the depth of its derivation.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ..text.notation import parse_grammar
from .derivations import Derivations
from .pairs import Alphabet, Pair, Source, Word, next_symbol

BLANK = "#"

PARENTHESIS = """\
S -> S T | T S | T
T -> '(' T ')' | '(' ')'
T -> '[' T ']' | '[' ']'
"""

# Reverse Polish notation, with the value of the longest formula that ends there after each symbol.
FORMULA = """\
S -> Strue | Sfalse
Strue -> 'T' '1' | Strue Strue 'and' '1' | Strue Strue 'or' '1' | Strue Sfalse 'or' '1' | Sfalse Strue 'or' '1'
Sfalse -> 'F' '0' | Sfalse Sfalse 'or' '0' | Sfalse Sfalse 'and' '0' | Sfalse Strue 'and' '0' | Strue Sfalse 'and' '0'
"""

AGREEMENT = """\
S -> NPsing 'Auxsing' | NPplur 'Auxplur'
NP -> NPsing | NPplur
NPsing -> 'Det' 'Nsing' PP | 'Det' 'Nsing' Relsing | 'Det' 'Nsing'
NPplur -> 'Det' 'Nplur' PP | 'Det' 'Nplur' Relplur | 'Det' 'Nplur'
PP -> 'Prep' NP
Relsing -> 'Rel' 'Auxsing' VP | Relobj
Relplur -> 'Rel' 'Auxplur' VP | Relobj
Relobj -> 'Rel' NPsing 'Auxsing' 'Vtrans' | 'Rel' NPplur 'Auxplur' 'Vtrans'
VP -> 'Vintrans' | 'Vtrans' NP
"""


@dataclass(frozen=True)
class GrammarTask:
    """A task on strings of a grammar.

    Attributes:
        grammar: its text.
        alphabet: the symbols of the pairs.
        pair: the pair of a string of the grammar.
        symbols_per_input: number of symbols of a string for each symbol of the input.
        ambiguous: whether a string may have several derivations. Where it has one, uniform over derivations is uniform
            over strings, and nothing has to be counted.
    """

    grammar: str
    alphabet: Alphabet
    pair: Callable[[Word], Pair]
    symbols_per_input: int = 1
    ambiguous: bool = False

    @cached_property
    def derivations(self) -> Derivations:
        """The derivations of the grammar."""
        return Derivations(parse_grammar(self.grammar))

    def longest(self, depth: int) -> int:
        """The number of symbols of the longest input of at most this depth; 0 if there is none."""
        return (self.derivations.longest(depth) or 0) // self.symbols_per_input

    def strings(self, depth: int) -> Source:
        """Pairs that are uniform over the distinct strings of at most this depth."""
        return self._source(depth, self.derivations.draw_string if self.ambiguous else self.derivations.draw)

    def trees(self, depth: int) -> Source:
        """Pairs that are uniform over the derivations of at most this depth."""
        return self._source(depth, self.derivations.draw)

    def _source(self, depth: int, draw: Callable[[random.Random, int], Word]) -> Source:
        return Source(self.alphabet, self.longest(depth), lambda rng: self.pair(draw(rng, depth)))


def _next_symbol(word: Word) -> Pair:
    return next_symbol(word, BLANK)


PARENTHESIS_TASK = GrammarTask(
    PARENTHESIS, Alphabet(("(", ")", "[", "]", BLANK), BLANK, (")", "]")), _next_symbol, ambiguous=True
)

FORMULA_TASK = GrammarTask(
    FORMULA,
    Alphabet(("T", "F", "and", "or", "0", "1", BLANK), BLANK, ("0", "1")),
    lambda word: Pair(word[::2], word[1::2]),
    symbols_per_input=2,
)

AGREEMENT_TASK = GrammarTask(
    AGREEMENT,
    Alphabet(
        ("Det", "Nsing", "Nplur", "Auxsing", "Auxplur", "Prep", "Rel", "Vintrans", "Vtrans", BLANK),
        BLANK,
        ("Auxsing", "Auxplur"),
    ),
    _next_symbol,
)
