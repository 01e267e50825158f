"""The corpus ``reversal``: strings w w^R over a few symbols, for language modelling, with their lower bound.

The distribution p: the length is uniform over the even numbers min_length..max_length, and w is uniform over
the strings of half that length. Each string belongs to one split for ever: by its sha256, 3 of 5 to train, 1
to valid and 1 to test, whatever the seed; a split's sentence of a given length is uniform over the split's
strings of that length. Within a split, short strings may occur more than once. As p depends on the length
only, and lengths are as in p, the lower bound of the cross-entropy is not affected by the division into
splits.

Files, in ``text/``: ``{train,valid,test}.txt``, one string a line, symbols separated by blanks; ``.nll``, for
each line -log p in nats with the end of sentence (EOS) counted and, after a tab, without.
``lower_bound.json`` has the sums and rates of p for each split: in expectation over strings drawn from p, no
model does better.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_at_least, require_at_most
from ..text.binarise import SUFFIX, TEXT, binarise_language
from ..text.manifest import Manifest
from ..text.output import corpus_folder, write_lines
from ..text.progress import progress
from ..text.splits import SPLITS, TRIES_IN_A_ROW, check_sizes, stream

CORPUS = "reversal"
LOWER_BOUND_NAME = "lower_bound.json"
GREATEST_SYMBOLS = 1_000_000
GREATEST_LENGTH = 100_000

String = tuple[int, ...]
"""A string of symbols 0..k-1."""


@dataclass(frozen=True)
class Options:
    """What shapes the corpus.

    Attributes:
        symbols: size k of the alphabet; the symbols are written 0..k-1.
        min_length: least length of w w^R, even.
        max_length: greatest length of w w^R, even.
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
        check_sizes(self.sizes())
        require_at_least("--seed", self.seed, 0)
        require_at_least("--symbols", self.symbols, 2)
        require_at_most("--symbols", self.symbols, GREATEST_SYMBOLS)
        require_at_least("--min-length", self.min_length, 2)
        require_at_most("--max-length", self.max_length, GREATEST_LENGTH)
        for flag, length in (("--min-length", self.min_length), ("--max-length", self.max_length)):
            if length % 2:
                raise PrepareError(f"{flag} must be even (it is the length of w and its reversal), got {length}")
        if self.max_length < self.min_length:
            raise PrepareError(f"--max-length {self.max_length} is less than --min-length {self.min_length}")

    def sizes(self) -> dict[str, int]:
        """The number of strings in each split."""
        return {"train": self.train_size, "valid": self.valid_size, "test": self.test_size}

    def lengths(self) -> range:
        """The lengths that strings have."""
        return range(self.min_length, self.max_length + 1, 2)


def generate(options: Options) -> dict[str, list[String]]:
    """Draw the strings of each split; the same options give the same strings.

    Raises:
        PrepareError: a length has no string that belongs to some split.
    """
    splits = {}
    for split, size in options.sizes().items():
        strings = draw_strings(options, stream(options.seed, split), split, size)
        splits[split] = list(progress(strings, label=f"{CORPUS}: {split}", total=size))
    return splits


def draw_strings(options: Options, rng: random.Random, split: str, size: int) -> Iterator[String]:
    """Yield ``size`` strings of a split: a uniform length, then one of its strings of that length."""
    lengths = options.lengths()
    for _ in range(size):
        length = lengths[int(rng.random() * len(lengths))]
        yield _draw_string(rng, length, options.symbols, split)


def _draw_string(rng: random.Random, length: int, symbols: int, split: str) -> String:
    for _ in range(TRIES_IN_A_ROW):
        half = tuple(int(rng.random() * symbols) for _ in range(length // 2))
        if split_of(half) == split:
            return half + half[::-1]
    raise PrepareError(
        f"none of the {symbols ** (length // 2)} strings of length {length} belongs to {split} "
        f"(in {TRIES_IN_A_ROW} tries); raise --min-length or --symbols"
    )


def split_of(half: String) -> str:
    """The split to which the string with first half ``half`` belongs, decided by its sha256."""
    digest = hashlib.sha256(" ".join(map(str, half)).encode()).digest()
    return ("train", "train", "train", "valid", "test")[int.from_bytes(digest[:8], "big") % 5]


def negative_log_probability(length: int, lengths: Sequence[int], symbols: int) -> float:
    """-log p(w w^R) in nats for a string of ``length``, the end of sentence included."""
    return math.log(len(lengths)) + length // 2 * math.log(symbols)


def negative_log_prefix_probability(string: String, lengths: Sequence[int], symbols: int) -> float:
    """-log of the probability, under p, that a string begins with ``string``, in nats.

    This is the sum of -log p(symbol | symbols before it), hence what a perfect model pays without the end of
    sentence. A longer string u u^R of length 2h begins with ``string`` (length n) if its half is the
    beginning of ``string`` and the rest of ``string`` mirrors it (h < n), or if u begins with ``string`` (h
    >= n).
    """
    n = len(string)
    terms = []
    for half in (length // 2 for length in lengths if length >= n):
        if half >= n:
            terms.append(symbols ** float(n // 2 - n))
        elif string[half:] == string[:half][::-1][: n - half]:
            terms.append(symbols ** float(n // 2 - half))
    return negative_log_probability(n, lengths, symbols) - math.log(math.fsum(terms))


def lower_bound(strings: Sequence[String], options: Options) -> dict[str, Any]:
    """The cross-entropy of p itself on ``strings``: sums in nats, and bits a token, with and without EOS.

    ``bits_per_token_with_eos`` compares with the base-2 loss of fairseq-eval-lm, which counts EOS as a token.
    """
    with_eos, without_eos = (math.fsum(column) for column in zip(*_bounds(strings, options), strict=True))
    symbols = sum(map(len, strings))
    tokens = symbols + len(strings)
    return {
        "sentences": len(strings),
        "tokens_with_eos": tokens,
        "tokens_without_eos": symbols,
        "nats_with_eos": round(with_eos, 6),
        "nats_without_eos": round(without_eos, 6),
        "bits_per_token_with_eos": round(with_eos / tokens / math.log(2), 6),
        "bits_per_token_without_eos": round(without_eos / symbols / math.log(2), 6),
        "perplexity_with_eos": round(math.exp(with_eos / tokens), 6),
        "perplexity_without_eos": round(math.exp(without_eos / symbols), 6),
    }


def _bounds(strings: Sequence[String], options: Options) -> Iterator[tuple[float, float]]:
    """For each string -log p in nats, with and without the end of sentence."""
    lengths, symbols = options.lengths(), options.symbols
    for string in strings:
        yield (
            negative_log_probability(len(string), lengths, symbols),
            negative_log_prefix_probability(string, lengths, symbols),
        )


def prepare(options: Options, target: Path, *, force: bool = False) -> None:
    """Write the corpus into the folder ``target``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(target, binarise=options.binarise, force=force) as folder:
        splits = generate(options)
        _write_text(splits, options, folder)
        if options.binarise:
            binarise_language(folder)
        Manifest(
            corpus=CORPUS,
            options=asdict(options),
            splits={split: _counts(strings) for split, strings in splits.items()},
            dropped={split: {} for split in SPLITS},
            binarised=options.binarise,
        ).write(folder)


def _write_text(splits: dict[str, list[String]], options: Options, folder: Path) -> None:
    for split, strings in splits.items():
        write_lines(folder / TEXT / f"{split}.{SUFFIX}", (" ".join(map(str, string)) for string in strings))
        bounds = (f"{with_eos:.6f}\t{without:.6f}" for with_eos, without in _bounds(strings, options))
        write_lines(folder / TEXT / f"{split}.nll", bounds)
    bound = {split: lower_bound(strings, options) for split, strings in splits.items()}
    write_lines(folder / LOWER_BOUND_NAME, [json.dumps(bound, indent=2)])


def _counts(strings: Sequence[String]) -> dict[str, int]:
    """Counts of one split for the manifest; symbols do not count the end of sentence."""
    return {
        "strings": len(strings),
        "distinct_strings": len(set(strings)),
        "symbols": sum(map(len, strings)),
        "longest": max(map(len, strings)),
    }
