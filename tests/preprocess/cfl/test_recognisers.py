"""Recognisers against probabilities."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator

import pytest

from fairseq_stack_preprocess.cfl.distributions import distribution_of
from fairseq_stack_preprocess.cfl.languages import LANGUAGES, Word
from fairseq_stack_preprocess.cfl.recognisers import recogniser_of
from tests.helpers import hostile

from .test_languages import make, recogniser, short_language

HARDEST = "hardest-cfl"
MOST_STRINGS = 600


def parameters_of(name: str, number_of_symbols: int) -> dict[str, float]:
    """The papers' parameters, except for the number of kinds of symbols."""
    defaults = LANGUAGES[name].defaults
    return {key: number_of_symbols if key in ("symbol_types", "bracket_types") else defaults[key] for key in defaults}


def possible_strings(name: str, number: int) -> tuple[list[Word], set[Word]]:
    """All strings up to a length, and those of them with a probability; without a grammar it is the same for all."""
    distribution = distribution_of(LANGUAGES[name], parameters_of(name, number), 20)
    vocabulary = distribution.vocabulary
    greatest = max(n for n in range(1, 13) if len(vocabulary) ** n <= MOST_STRINGS * number**3)
    words: list[Word] = []
    possible: set[Word] = set()
    for length in range(1, greatest + 1):
        group = list(itertools.product(vocabulary, repeat=length))
        words += group
        if distribution.lengths(length, length):
            values = {group[i]: value for i, value in distribution.log_probabilities(group) if value > -math.inf}
            if LANGUAGES[name].grammar is None:
                assert list(values.values()) == pytest.approx([-math.log(len(values))] * len(values))
            possible |= values.keys()
    return words, possible


@pytest.mark.parametrize("number", [1, 2, hostile(3)])
@pytest.mark.parametrize("name", [name for name in LANGUAGES if name != HARDEST])
def test_exactly_the_possible_strings_are_recognised(name: str, number: int) -> None:
    recognise = recogniser_of(LANGUAGES[name], parameters_of(name, number))
    words, possible = possible_strings(name, number)
    assert possible
    assert {word for word in words if recognise(word)} == possible
    assert not recognise(())
    assert not any(recognise((*word[:-1], symbol)) for word in possible for symbol in ("<unk>", "madeupword0000"))


def edits(word: Word, vocabulary: Iterable[str]) -> Iterator[Word]:
    """All strings with one symbol more, less or other."""
    for i in range(len(word) + 1):
        yield from ((*word[:i], symbol, *word[i:]) for symbol in vocabulary)
        if i < len(word):
            yield (*word[:i], *word[i + 1 :])
            yield from ((*word[:i], symbol, *word[i + 1 :]) for symbol in vocabulary)


def test_hardest_language_around_all_short_strings() -> None:
    possible = short_language(HARDEST).keys()
    recognise, greatest = recogniser(HARDEST), max(map(len, possible))
    near = {other for word in possible for other in edits(word, "()[],;$") if len(other) <= greatest}
    assert len(near) > 5_000
    assert {word for word in near | possible if recognise(word)} == possible
    assert not recognise(tuple(",$,;"))  # $ and no bracket
    assert not recognise(tuple(",$(),,;"))  # a part between commas is empty


def test_hardest_language_near_long_strings() -> None:
    """One symbol of a long string changed: recognised if it has a probability."""
    distribution, rng, recognise = make(HARDEST, 42), random.Random(0), recogniser(HARDEST)
    words = [distribution.sample(41, rng) for _ in range(15)]
    near = [other for word in words for other in rng.sample(list(edits(word, "()[],;$")), 20)]
    actual = dict(distribution.log_probabilities(near))
    assert [recognise(word) for word in near] == [actual[i] > -math.inf for i in range(len(near))]
    assert 0.2 < sum(map(recognise, near)) / len(near) < 0.8
