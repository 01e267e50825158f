"""Distributions over the strings of each length: of a grammar, or uniform."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ..text.notation import parse_grammar
from ..text.pcfg import PCFG
from ..text.splits import pick
from .inside import string_probabilities
from .languages import Language, Parameters, Transform, Word
from .lengths import BinaryGrammar, LengthTable, Sampler
from .normal_form import without_epsilon, without_unary_start
from .scaled import log_of


class GrammarDistribution:
    """p(w | length of w) for the strings w of a grammar.

    Args:
        grammar: the grammar.
        greatest: the maximum length of strings that will be asked for.

    Attributes:
        vocabulary: the terminals, in a fixed order.

    Raises:
        ValueError: see :meth:`.BinaryGrammar.of`.
    """

    def __init__(self, grammar: PCFG, greatest: int) -> None:
        binary = BinaryGrammar.of(grammar)
        self.vocabulary = binary.terminals
        self._table = LengthTable(binary, greatest)
        self._sampler = Sampler(self._table)

    def lengths(self, least: int, greatest: int) -> list[int]:
        """The lengths from ``least`` to ``greatest`` that strings have."""
        return self._table.lengths(least, greatest)

    def sample(self, length: int, rng: random.Random) -> Word:
        """A string of a length.

        Raises:
            ValueError: no string has the length, or it is greater than the maximum.
        """
        self._require_at_most_greatest(length)
        if not self.lengths(length, length):
            raise ValueError(f"length: no string has the length {length}")
        return self._sampler.sample(length, rng)

    def log_probabilities(self, strings: Sequence[Word]) -> Iterator[tuple[int, float]]:
        """For each string its position in ``strings`` and log p(string | its length) in nats, in any order; -inf for
        strings that are not in the language.

        Raises:
            ValueError: a string is longer than the maximum.
        """
        positions: defaultdict[int, list[int]] = defaultdict(list)
        for i, string in enumerate(strings):
            positions[len(string)].append(i)
        self._require_at_most_greatest(max(positions, default=0))
        for length, group in sorted(positions.items()):
            log_of_length = log_of(self._table.probability[self._table.grammar.start, length])
            values = string_probabilities(self._table, [strings[i] for i in group])
            for i, value in zip(group, values, strict=True):
                yield i, float(log_of(value) - log_of_length) if value.fraction > 0 else -math.inf

    def _require_at_most_greatest(self, length: int) -> None:
        if length > self._table.greatest:
            raise ValueError(f"length: expected at most {self._table.greatest}, the maximum length, got {length}")


class UniformDistribution:
    """Strings that are made from w, with all w of a length equally likely.

    Args:
        transform: how a string is made from w.
    """

    def __init__(self, transform: Transform) -> None:
        self.vocabulary = transform.vocabulary
        self._transform = transform
        self._log_symbols = Decimal(len(transform.symbols)).ln()

    def lengths(self, least: int, greatest: int) -> list[int]:
        """See :class:`GrammarDistribution`."""
        lengths = range(max(least, 1), greatest + 1)
        return [length for length in lengths if self._transform.content_length(length) is not None]

    def sample(self, length: int, rng: random.Random) -> Word:
        """See :class:`GrammarDistribution`."""
        symbols = self._transform.symbols
        content = self._transform.content_length(length) if length > 0 else None
        if content is None:
            raise ValueError(f"length: no string has the length {length}")
        w = tuple(pick(rng, symbols) for _ in range(content))
        return self._transform.string(w)

    def log_probabilities(self, strings: Sequence[Word]) -> Iterator[tuple[int, float]]:
        """See :class:`GrammarDistribution`."""
        for i, string in enumerate(strings):
            yield i, self._log_probability(string)

    def _log_probability(self, string: Word) -> float:
        content = self._transform.content_length(len(string))
        if content is None or not self._transform.contains(string):
            return -math.inf
        return float(-content * self._log_symbols)


Distribution = GrammarDistribution | UniformDistribution


def distribution_of(language: Language, parameters: Parameters, greatest: int) -> Distribution:
    """The distribution of a language's strings of lengths up to ``greatest``.

    Args:
        language: the language.
        parameters: all its parameters.
        greatest: the maximum length that will be asked for.
    """
    if language.grammar is not None:
        grammar = parse_grammar(language.grammar(parameters), language.name)
        return GrammarDistribution(_as_in_the_data(grammar), greatest)
    assert language.transform is not None
    return UniformDistribution(language.transform(parameters))


def _as_in_the_data(grammar: PCFG) -> PCFG:
    """The grammar as the papers' data have it."""
    nonempty = without_epsilon(grammar)
    changed = without_unary_start(nonempty)
    # Where nothing changes, the original has fewer pairs of symbols when it is made binary first.
    return grammar if changed is nonempty else changed
