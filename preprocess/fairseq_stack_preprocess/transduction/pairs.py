"""Pairs of an input and a target of equal length, the alphabet of a task, and what pairs are drawn from."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

Word = tuple[str, ...]


@dataclass(frozen=True)
class Alphabet:
    """The symbols of a task.

    Attributes:
        symbols: all symbols, in the order of the authors' one-hot vectors.
        blank: the symbol that pads inputs, and targets where nothing is to be said.
        scored: the symbols of targets that count: all others are ignored by the loss and by the accuracy.
    """

    symbols: Word
    blank: str
    scored: Word


@dataclass(frozen=True)
class Pair:
    """An input and its target, of the same length."""

    input: Word
    target: Word


@dataclass(frozen=True)
class Source:
    """What the pairs of a split are drawn from.

    Attributes:
        alphabet: the symbols of the pairs.
        longest: the number of symbols of the longest input that can be drawn.
        draw: draws a pair.
    """

    alphabet: Alphabet
    longest: int
    draw: Callable[[random.Random], Pair]


def after_reading(word: Word, answer: Word, blank: str, room: int | None = None) -> Pair:
    """``word``, then blanks -> blanks while it is read, then ``answer``.

    ``room`` is the number of symbols after the word: None for as many as the answer has; otherwise blanks fill it up.
    """
    room = len(answer) if room is None else room
    target = (blank,) * len(word) + answer + (blank,) * (room - len(answer))
    return Pair(word + (blank,) * room, target)


def next_symbol(word: Word, blank: str) -> Pair:
    """``word`` -> the symbol after each of its symbols; a blank stands for the end."""
    return Pair(word, (*word[1:], blank))
