"""Regions of sentences: their marks in a text, and their surprisals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from fairseq_stack.errors import UserError
from fairseq_stack.hub.surprisals import Word


@dataclass(frozen=True)
class Region:
    """A region of a sentence.

    Attributes:
        text: its words.
        num_words: number of words.
        num_tokens: number of their tokens.
        surprisal: the sum of the surprisals of its words, in nats; 0 if it has none.
        is_unknown: whether one of its tokens is ``<unk>`` to the model.
    """

    text: str
    num_words: int
    num_tokens: int
    surprisal: float
    is_unknown: bool


def marked_regions(sentence: str, mark: str, number: int) -> list[str]:
    """The texts of the regions of a sentence, between which the mark stands as a word; none of an empty sentence.

    Args:
        sentence: the words and the marks, separated by spaces.
        mark: the mark.
        number: of the sentence, for errors.

    Raises:
        UserError: the mark is a part of a word.
    """
    words = sentence.split()
    regions: list[list[str]] = [[]] if words else []
    for word in words:
        if word == mark:
            regions.append([])
        elif mark in word:
            raise UserError(f"sentence {number}: {word!r} contains the marker {mark!r}; write spaces around the marker")
        else:
            regions[-1].append(word)
    return [" ".join(region) for region in regions]


def regions_of(texts: Sequence[str], words: Sequence[Word]) -> list[Region]:
    """The regions of a sentence.

    Args:
        texts: the words of each region, separated by spaces.
        words: what :func:`~fairseq_stack.hub.surprisals.surprisals` yields for all of them in one sentence: its words
            and its end, which is in no region.

    Raises:
        UserError: the model reads other words than those between spaces.
    """
    lengths = [len(text.split()) for text in texts]
    if sum(lengths) != len(words) - 1:
        read = " ".join(word.text for word in words[:-1])
        raise UserError(f"the regions {' | '.join(texts)!r} have {sum(lengths)} words, but the model reads {read!r}")
    remaining, regions = iter(words), []
    for text, length in zip(texts, lengths, strict=True):
        inside = list(islice(remaining, length))
        surprisal = math.fsum(word.surprisal for word in inside)
        num_tokens = sum(word.num_tokens for word in inside)
        regions.append(Region(text, length, num_tokens, surprisal, any(word.is_unknown for word in inside)))
    return regions
