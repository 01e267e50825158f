"""The corpus ``reversal``: strings w w^R over a few symbols, for language modelling, with their lower bound.

The distribution p: the length is uniform over the even numbers min_length..max_length, and w is uniform over
the strings of half that length. Each string belongs to one split for ever: by its sha256, 3 of 5 to train, 1
to valid and 1 to test, whatever the seed; a split's sentence of a given length is uniform over the split's
strings of that length. Within a split, short strings may occur more than once. As p depends on the length
only, and lengths are as in p, the lower bound of the cross-entropy is not affected by the division into
splits.

Files: see :mod:`.string_sets`; ``text/SPLIT.prefix-nll`` has for each line -log of the probability that a string begins
with it, which is what a perfect model pays for the symbols alone, without the end. In expectation over strings drawn
from p, no model does better than ``lower_bound.json``, whose entry ``prefixes`` is of the symbols alone.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import TEXT
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.manifest import Manifest
from ..text.numbers import write_numbers
from ..text.output import corpus_folder
from ..text.splits import SIZES, TRIES_IN_A_ROW, sizes_of, stream
from .languages import Word, symbols
from .string_sets import StringSet, counts_of, lower_bound, per_token, write_lower_bounds, write_strings

CORPUS = "reversal"
GREATEST_SYMBOLS = 1_000_000
GREATEST_LENGTH = 100_000

LEAST_EXPONENT_OF_ZERO = 1100
"""2 to minus this is 0 in a double, as are such powers of larger numbers."""


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        symbols: size k of the alphabet; the symbols are written 0..k-1.
        min_length: minimum length of w w^R, even.
        max_length: maximum length of w w^R, even.
        train_size: number of strings in train (likewise ``valid_size``, ``test_size``).
        seed: seed of the random numbers.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    symbols: int = 2
    min_length: int = 10
    max_length: int = 40
    train_size: int = 10_000
    valid_size: int = 1_000
    test_size: int = 1_000
    seed: int = 0
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, train_size=SIZES, valid_size=SIZES, test_size=SIZES, seed=(0, None))
        require_ranges(self, symbols=(2, GREATEST_SYMBOLS), min_length=(2, None), max_length=(None, GREATEST_LENGTH))
        for flag, length in (("--min-length", self.min_length), ("--max-length", self.max_length)):
            if length % 2:
                raise PrepareError(f"{flag} must be even (it is the length of w and its reversal), got {length}")
        if self.max_length < self.min_length:
            raise PrepareError(f"--max-length {self.max_length} is less than --min-length {self.min_length}")

    def lengths(self) -> range:
        """The lengths that strings have."""
        return range(self.min_length, self.max_length + 1, 2)


def generate(options: Options) -> dict[str, StringSet]:
    """Draw the strings of each split; the same options give the same strings.

    Raises:
        PrepareError: a length has no string that belongs to some split.
    """
    splits = {}
    for split, size in sizes_of(options).items():
        strings = draw_strings(options, stream(options.seed, split), split, size)
        splits[split] = string_set(list(progress(strings, label=f"{CORPUS}: {split}", total=size)), options)
    return splits


def string_set(strings: Sequence[Word], options: Options) -> StringSet:
    """The strings with their probabilities: given the length of w w^R, all w are equally likely."""
    log_symbols = Decimal(options.symbols).ln()
    return StringSet(options.lengths(), strings, [float(-(len(string) // 2) * log_symbols) for string in strings])


def draw_strings(options: Options, rng: random.Random, split: str, size: int) -> Iterator[Word]:
    """Yield ``size`` strings of a split: a uniform length, then one of its strings of that length."""
    lengths, alphabet = options.lengths(), symbols(options.symbols)
    for _ in range(size):
        length = lengths[int(rng.random() * len(lengths))]
        yield _draw_string(rng, length, alphabet, split)


def _draw_string(rng: random.Random, length: int, alphabet: Sequence[str], split: str) -> Word:
    for _ in range(TRIES_IN_A_ROW):
        half = tuple(alphabet[int(rng.random() * len(alphabet))] for _ in range(length // 2))
        if split_of(half) == split:
            return half + half[::-1]
    raise PrepareError(
        f"none of the {len(alphabet) ** (length // 2)} strings of length {length} belongs to {split} "
        f"(in {TRIES_IN_A_ROW} tries); raise --min-length or --symbols"
    )


def split_of(half: Word) -> str:
    """The split to which the string with first half ``half`` belongs, decided by its sha256."""
    digest = hashlib.sha256(" ".join(half).encode()).digest()
    return ("train", "train", "train", "valid", "test")[int.from_bytes(digest[:8], "big") % 5]


def prefix_bounds(strings: StringSet, options: Options) -> list[float]:
    """For each string -log of the probability, under p, that a string begins with it, in nats."""
    return [
        bound - _log_relative_probability_of_prefix(string, strings.lengths, options.symbols)
        for string, bound in zip(strings.strings, strings.bounds(), strict=True)
    ]


def _log_relative_probability_of_prefix(string: Word, lengths: Sequence[int], number_of_symbols: int) -> float:
    """log of the probability that a string begins with ``string``, relative to p(``string``).

    A longer string u u^R of length 2h begins with ``string`` (length n) if its half is the beginning of
    ``string`` and the rest of ``string`` mirrors it (h < n), or if u begins with ``string`` (h >= n).
    """
    n = len(string)
    terms = []
    for half in (length // 2 for length in lengths if length >= n):
        if half >= n or string[half:] == string[:half][::-1][: n - half]:
            exponent = min(min(half, n) - n // 2, LEAST_EXPONENT_OF_ZERO)
            terms.append(1 / number_of_symbols**exponent)
    return float(Decimal(math.fsum(terms)).ln())  # unlike math.log and powers of floats, the same on every machine


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        splits = generate(options)
        _write_text(splits, options, new)
        if options.binarise:
            binarise_language(new)
        Manifest(
            corpus=CORPUS,
            options=asdict(options),
            splits={
                split: {**counts_of(strings.strings), "longest": max(map(len, strings.strings))}
                for split, strings in splits.items()
            },
        ).write(new)


def _write_text(splits: dict[str, StringSet], options: Options, folder: Path) -> None:
    bounds = {}
    for split, strings in splits.items():
        write_strings(folder / TEXT, split, strings)
        prefixes = prefix_bounds(strings, options)
        write_numbers(folder / TEXT / f"{split}.prefix-nll", prefixes)
        bounds[split] = {**lower_bound(strings), "prefixes": _prefix_rates(prefixes, strings)}
    write_lower_bounds(folder, bounds)


def _prefix_rates(prefixes: Sequence[float], strings: StringSet) -> dict[str, Any]:
    nats, tokens = math.fsum(prefixes), sum(map(len, strings.strings))
    return {"nats": nats, "tokens": tokens, **per_token(nats, tokens)}
