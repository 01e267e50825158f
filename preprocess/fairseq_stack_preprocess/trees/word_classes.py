"""Classes of rare words as in Dyer et al. (2016), "Recurrent Neural Network Grammars".

Words that occur at least twice in train are known. Every other word becomes a class that shows its
capitals, digits, dash and ending: *Kuncoro* ``UNK-INITC``, *1,853* ``UNK-NUM``, *re-reading*
``UNK-LC-DASH``. The order of the tests follows the paper's released preprocessing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

UNKNOWN = "UNK"
LEAST_COUNT = 2
"""A word that occurs this often in train is known."""

ENDINGS = ("ed", "ing", "ion", "er", "est", "ly", "ity", "y", "al")


def known_words(counts: Mapping[str, int]) -> frozenset[str]:
    """The words that are not singletons in ``counts``, the words of train and how often they occur."""
    return frozenset(word for word, count in counts.items() if count >= LEAST_COUNT)


def known_or_class(word: str, known: Collection[str]) -> str:
    """The word itself if it is known, otherwise its class."""
    return word if word in known else word_class(word, known)


def word_or_class(word: str, known: Collection[str]) -> str:
    """As :func:`known_or_class`, of text in which words may already be classes."""
    return word if is_class(word) else known_or_class(word, known)


def is_class(word: str) -> bool:
    """Whether the word is the name of a class."""
    return f"{word}-".startswith(f"{UNKNOWN}-")


def word_class(word: str, known: Collection[str]) -> str:
    """The class of a word that is not known; ``known`` says whether its lower-cased form is.

    >>> word_class("Running", {"running"}), word_class("B-52s", ())
    ('UNK-INITC-KNOWNLC-ing', 'UNK-INITC-NUM-DASH-s')
    """
    digit = any(char.isdigit() for char in word)
    dash = "-" in word
    capitals = sum(char.isupper() for char in word)
    parts = [UNKNOWN, *_letters(word, capitals, known)]
    if digit:
        parts.append("NUM")
    if dash:
        parts.append("DASH")
    parts += _ending(word.lower(), plain=not dash and not (digit and capitals))
    return "-".join(parts)


def _letters(word: str, capitals: int, known: Collection[str]) -> list[str]:
    if word[0].isupper():
        if capitals > 1:
            return ["CAPS"]
        return ["INITC", "KNOWNLC"] if word.lower() in known else ["INITC"]
    if not word[0].isalpha() and capitals:
        return ["CAPS"]
    return ["LC"] if any(char.islower() for char in word) else []


def _ending(lower: str, plain: bool) -> list[str]:
    """The ending, if any; a final s behind s, i or u is none, and hides the others."""
    if lower.endswith("s") and len(lower) >= 3:
        return [] if lower[-2] in "siu" else ["s"]
    if plain and len(lower) >= 5:
        return [ending for ending in ENDINGS if lower.endswith(ending)][:1]
    return []


@dataclass(frozen=True)
class Fingerprint:
    """A fingerprint by which a vocabulary with its counts can be recognised.

    Attributes:
        types: number of different words.
        tokens: number of words in all.
        sha256: of the lines ``word TAB count LF`` in UTF-8, sorted by code points.
    """

    types: int
    tokens: int
    sha256: str

    @classmethod
    def of(cls, counts: Counter[str]) -> Fingerprint:
        """The fingerprint of words and how often each occurs."""
        lines = "".join(f"{word}\t{count}\n" for word, count in sorted(counts.items()))
        return cls(len(counts), counts.total(), hashlib.sha256(lines.encode("utf-8")).hexdigest())
