"""The corpus ``cfl``: training, validation and test sets of a formal language, with exact probabilities.

The distribution p of a set (2020 paper, Appendix C): the length is uniform over those lengths in the set's range that
strings of the language have; given its length, a string has the probability that the language's grammar gives it
among the strings of its length. In train and valid one length is drawn for each ``batch_size`` strings in a row, so
that batches of this size (fairseq makes them of strings of like lengths) have no padding. Test has
``test_per_length`` strings of each length and a seed of its own, so that different training sets have one test set.

Files, in ``text/``: ``{train,valid,test}.txt``, one string a line, symbols separated by blanks; ``.logp``, for each
line log p(string | its length); ``.nll``, for each line -log p(string): that of the string and its end. In nats.
``vocabulary.txt`` is the dictionary of ``data-bin``: all symbols of the language, in the same order for every seed.
``grammar.txt`` is the grammar, if there is one. ``lower_bound.json`` has the cross-entropy of p itself on each set:
in expectation over sets drawn from p, no model does better.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_at_least, require_at_most
from ..text.binarise import SUFFIX, TEXT, binarise_language
from ..text.manifest import Manifest, sha256_of
from ..text.output import corpus_folder, write_lines
from ..text.progress import progress
from ..text.splits import GREATEST_SIZE, SPLITS, check_sizes, stream
from .distributions import Distribution, GrammarDistribution, distribution_of
from .languages import LANGUAGES, Language, Parameters, Word
from .notation import format_grammar, parse_grammar, read_grammar

CORPUS = "cfl"
VOCABULARY_NAME = "vocabulary.txt"
GRAMMAR_NAME = "grammar.txt"
LOWER_BOUND_NAME = "lower_bound.json"
GREATEST_LENGTH = 10_000

DIGITS = 9
"""Digits after the point of rates in :data:`LOWER_BOUND_NAME`."""


@dataclass(frozen=True)
class Options:
    """What shapes the corpus. Either ``task`` or ``grammar`` must be given.

    Attributes:
        task: the name of one of :data:`.LANGUAGES`.
        grammar: a file with a grammar (see :mod:`.notation`).
        parameters: those of the task; what is not given has its default.
        unary_start: of a task, keep the strings whose derivation begins with a unary rule, as the papers print the
            grammars; the papers' data do not have them (see :meth:`.PCFG.without_unary_start`). Dyck and padded
            reversal differ in this; own grammars are always taken as they are.
        strip_cr: whether lines of ``grammar`` may end with CR LF.
        min_length: least length in train and valid (likewise ``max_length``).
        test_min_length: least length in test (likewise ``test_max_length``).
        train_size: number of strings in train (likewise ``valid_size``).
        test_per_length: number of strings of each length in test.
        batch_size: number of strings in a row that have one length.
        seed: seed of train and valid.
        test_seed: seed of test.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range or does not go with another.
    """

    task: str | None = None
    grammar: Path | None = None
    parameters: Parameters = field(default_factory=dict)
    unary_start: bool = False
    strip_cr: bool = False
    min_length: int = 40
    max_length: int = 80
    test_min_length: int = 40
    test_max_length: int = 100
    train_size: int = 10_000
    valid_size: int = 1_000
    test_per_length: int = 100
    batch_size: int = 10
    seed: int = 0
    test_seed: int = 0
    binarise: bool = True

    def __post_init__(self) -> None:
        check_sizes({"train": self.train_size, "valid": self.valid_size})
        for flag, value in (("--test-per-length", self.test_per_length), ("--batch-size", self.batch_size)):
            require_at_least(flag, value, 1)
        require_at_most("--test-per-length", self.test_per_length, GREATEST_SIZE)
        for flag, value in (("--seed", self.seed), ("--test-seed", self.test_seed)):
            require_at_least(flag, value, 0)
        for prefix, (least, greatest) in (("--", self.ranges()["train"]), ("--test-", self.ranges()["test"])):
            require_at_least(f"{prefix}min-length", least, 1)
            if greatest < least:
                raise PrepareError(f"{prefix}max-length {greatest} is less than {prefix}min-length {least}")
            require_at_most(f"{prefix}max-length", greatest, GREATEST_LENGTH)
        object.__setattr__(self, "parameters", self._all_parameters())

    def _all_parameters(self) -> Parameters:
        if (self.task is None) == (self.grammar is None):
            raise PrepareError("give either --task or --grammar")
        if self.task is not None:
            if self.strip_cr:
                raise PrepareError("--strip-cr is for --grammar")
            language = self.language()
            if self.unary_start and language.grammar is None:
                raise PrepareError(f"--unary-start is for context-free tasks; {self.task} is none")
            return language.parameters(self.parameters)
        if self.parameters or self.unary_start:
            raise PrepareError("parameters of a task and --unary-start do not go with --grammar")
        return {}

    def language(self) -> Language:
        """The language of the task."""
        if self.task not in LANGUAGES:
            raise PrepareError(f"unknown task {self.task}; there are {', '.join(LANGUAGES)}")
        return LANGUAGES[self.task]

    def name(self) -> str:
        """What the corpus is of: the task or the grammar's file."""
        return self.task or str(self.grammar)

    def ranges(self) -> Mapping[str, tuple[int, int]]:
        """The least and the greatest length of each split."""
        train = self.min_length, self.max_length
        return {"train": train, "valid": train, "test": (self.test_min_length, self.test_max_length)}

    def distribution(self) -> Distribution:
        """The distribution of strings given their lengths.

        Raises:
            PrepareError: the grammar cannot be read or has no strings.
        """
        greatest = max(self.max_length, self.test_max_length)
        if self.grammar is None:
            return distribution_of(self.language(), self.parameters, greatest, unary_start=self.unary_start)
        grammar = read_grammar(self.grammar, strip_cr=self.strip_cr)
        try:
            return GrammarDistribution(grammar, greatest)
        except ValueError as error:
            raise PrepareError(f"{self.grammar}: {error}") from error

    def for_manifest(self) -> dict[str, Any]:
        """The options, with the grammar's name instead of its path."""
        return {**asdict(self), "grammar": None if self.grammar is None else self.grammar.name}


@dataclass(frozen=True)
class StringSet:
    """The strings of one split.

    Attributes:
        lengths: the lengths that the set is drawn from.
        strings: the strings.
        log_probabilities: for each string log p(string | its length) in nats.
    """

    lengths: Sequence[int]
    strings: Sequence[Word]
    log_probabilities: Sequence[float]

    def bounds(self) -> list[float]:
        """For each string -log p(string) in nats, that of its length included."""
        cost_of_length = _log(len(self.lengths))
        return [cost_of_length - value for value in self.log_probabilities]


@dataclass(frozen=True)
class FormalLanguageCorpus:
    """A generated corpus: the symbols of the language, in a fixed order, and the strings of each split."""

    vocabulary: Sequence[str]
    splits: Mapping[str, StringSet]


def generate(options: Options) -> FormalLanguageCorpus:
    """Draw the corpus; the same options give the same corpus on every machine.

    Raises:
        PrepareError: the grammar cannot be used, or there are no strings in a range of lengths.
    """
    distribution = options.distribution()
    splits = {split: _generate_split(distribution, split, options) for split in SPLITS}
    return FormalLanguageCorpus(distribution.vocabulary, splits)


def lengths_of(distribution: Distribution, split: str, options: Options) -> list[int]:
    """The lengths that strings of a split may have.

    Raises:
        PrepareError: there are none.
    """
    least, greatest = options.ranges()[split]
    lengths = distribution.lengths(least, greatest)
    if not lengths:
        raise PrepareError(f"{options.name()} has no string with a length from {least} to {greatest}")
    return lengths


def _generate_split(distribution: Distribution, split: str, options: Options) -> StringSet:
    lengths = lengths_of(distribution, split, options)
    rng = stream(options.test_seed if split == "test" else options.seed, split)
    if split == "test":
        wanted = [length for length in lengths for _ in range(options.test_per_length)]
    else:
        size = options.train_size if split == "train" else options.valid_size
        wanted = _draw_lengths(lengths, size, options.batch_size, rng)
    drawn = (distribution.sample(length, rng) for length in wanted)
    strings = list(progress(drawn, label=f"{CORPUS}: {split}", total=len(wanted)))
    values = distribution.log_probabilities(strings)
    found = dict(progress(values, label=f"{CORPUS}: {split}, log-probabilities", total=len(strings)))
    return StringSet(lengths, strings, [found[i] for i in range(len(strings))])


def _draw_lengths(lengths: Sequence[int], size: int, batch_size: int, rng: random.Random) -> list[int]:
    """``size`` lengths, one for each ``batch_size`` in a row."""
    batch_size = min(batch_size, size)
    number = math.ceil(size / batch_size)
    batches = [lengths[int(rng.random() * len(lengths))] for _ in range(number)]
    return [length for length in batches for _ in range(batch_size)][:size]


def lower_bound(strings: StringSet) -> dict[str, Any]:
    """The cross-entropy of p itself on a set.

    ``..._with_eos`` counts the end of each string as a token, as the papers of 2022 to 2024 do; ``..._without_eos``
    does not, as the paper of 2020. Both have the cost of the length, since a string's end says it. In
    ``by_length``, for the strings of one length, p is that given the length: nothing is paid for it.
    """
    lengths = [len(string) for string in strings.strings]
    groups = {
        length: [value for value, n in zip(strings.log_probabilities, lengths, strict=True) if n == length]
        for length in sorted(set(lengths))
    }
    return {
        "lengths": len(strings.lengths),
        **_rates(strings.bounds(), sum(lengths)),
        "by_length": {
            str(length): _rates([-value for value in values], length * len(values)) for length, values in groups.items()
        },
    }


def _rates(bounds: Sequence[float], symbols: int) -> dict[str, Any]:
    """Sum and rates of -log p of some strings that have ``symbols`` symbols in all."""
    nats = math.fsum(bounds)
    rates: dict[str, Any] = {"strings": len(bounds), "nats": nats}
    for name, tokens in (("with_eos", symbols + len(bounds)), ("without_eos", symbols)):
        rate = Decimal(nats) / tokens
        rates |= {
            f"tokens_{name}": tokens,
            f"nats_per_token_{name}": float(round(rate, DIGITS)),
            f"bits_per_token_{name}": float(round(rate / Decimal(2).ln(), DIGITS)),
            f"perplexity_{name}": float(round(rate.exp(), DIGITS)),
        }
    return rates


def _log(number: int) -> float:
    """The natural logarithm, with the same last digit on every machine."""
    return float(Decimal(number).ln())


def prepare(options: Options, target: Path, *, force: bool = False) -> None:
    """Write the corpus into the folder ``target``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(target, binarise=options.binarise, force=force) as folder:
        corpus = generate(options)
        _write_text(corpus, folder)
        _write_grammar(options, folder)
        if options.binarise:
            binarise_language(folder, dictionary=folder / TEXT / VOCABULARY_NAME)
        Manifest(
            corpus=CORPUS,
            options=options.for_manifest(),
            splits={split: _counts(strings) for split, strings in corpus.splits.items()},
            dropped={split: {} for split in SPLITS},
            inputs={} if options.grammar is None else {options.grammar.name: sha256_of(options.grammar)},
            binarised=options.binarise,
        ).write(folder)


def _write_text(corpus: FormalLanguageCorpus, folder: Path) -> None:
    text = folder / TEXT
    for split, strings in corpus.splits.items():
        write_lines(text / f"{split}.{SUFFIX}", map(" ".join, strings.strings))
        write_lines(text / f"{split}.logp", map(repr, strings.log_probabilities))
        write_lines(text / f"{split}.nll", map(repr, strings.bounds()))
    write_lines(text / VOCABULARY_NAME, (f"{symbol} 1" for symbol in corpus.vocabulary))
    bounds = {split: lower_bound(strings) for split, strings in corpus.splits.items()}
    write_lines(folder / LOWER_BOUND_NAME, [json.dumps(bounds, indent=2)])


def _write_grammar(options: Options, folder: Path) -> None:
    """Write the grammar, if there is one, as it was before anything was removed."""
    if options.grammar is not None:
        grammar = read_grammar(options.grammar, strip_cr=options.strip_cr)
    elif (make := options.language().grammar) is not None:
        grammar = parse_grammar(make(options.parameters))
    else:
        return
    (folder / GRAMMAR_NAME).write_text(format_grammar(grammar), encoding="utf-8", newline="\n")


def _counts(strings: StringSet) -> dict[str, Any]:
    """Counts of one split for the manifest; symbols do not count the end of a string."""
    by_length = Counter(map(len, strings.strings))
    return {
        "strings": len(strings.strings),
        "distinct_strings": len(set(strings.strings)),
        "symbols": sum(map(len, strings.strings)),
        "possible_lengths": len(strings.lengths),
        "strings_by_length": {str(length): by_length[length] for length in sorted(by_length)},
    }


def plan(options: Options) -> Iterator[str]:
    """Lines that tell what would be written.

    Raises:
        PrepareError: see :func:`generate`.
    """
    distribution = options.distribution()
    lengths = {split: lengths_of(distribution, split, options) for split in SPLITS}
    sizes = {
        "train": options.train_size,
        "valid": options.valid_size,
        "test": options.test_per_length * len(lengths["test"]),
    }
    spans = {split: f"{len(found)} possible lengths from {found[0]} to {found[-1]}" for split, found in lengths.items()}
    vocabulary = distribution.vocabulary
    yield f"vocabulary: {len(vocabulary)} symbols: {' '.join(vocabulary[:20])}{' ...' if len(vocabulary) > 20 else ''}"
    for split in SPLITS:
        yield f"{split}: {sizes[split]} strings, {spans[split]}"
