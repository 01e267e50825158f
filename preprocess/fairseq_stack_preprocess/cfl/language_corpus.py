"""The corpus ``cfl``: training, validation and test sets of a formal language, with exact probabilities.

The distribution p of a set (2020 paper, Appendix C): the length is uniform over those lengths in the set's range that
strings of the language have; given its length, a string has the probability that the language's grammar gives it
among the strings of its length. In train and valid one length is drawn for each ``batch_size`` strings in a row, so
that batches of this size (fairseq makes them of strings of like lengths) have no padding. Test has
``test_per_length`` strings of each length and a seed of its own, so that different training sets have one test set.

Files: see :mod:`.string_sets`; ``text/vocabulary.txt`` is the dictionary of ``data-bin``: all symbols of the language,
in the same order for every seed; ``grammar.txt`` is the grammar, if there is one; ``text/SPLIT.attach``, if they are
wanted, are the parses, as ``prepare treebank`` writes them. In expectation over sets drawn from p, no model does better
than ``lower_bound.json``.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PrepareError
from ..layout import LOWER_BOUND_NAME, SPLITS, TEXT
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.manifest import Manifest, sha256_of
from ..text.notation import format_grammar, parse_grammar, read_grammar
from ..text.output import corpus_folder, write_alphabet, write_lines
from ..text.splits import pick, stream
from .distributions import Distribution, GrammarDistribution, distribution_of
from .language_options import CORPUS, Options
from .string_sets import StringSet, counts_of, lower_bound, write_strings

__all__ = ["CORPUS", "Options", "generate", "prepare"]

GRAMMAR_NAME = "grammar.txt"


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
    distribution = distribution_from(options)
    lengths = {split: lengths_of(distribution, split, options) for split in SPLITS}
    splits = {split: _generate_split(distribution, lengths[split], split, options) for split in SPLITS}
    return FormalLanguageCorpus(distribution.vocabulary, splits)


def distribution_from(options: Options) -> Distribution:
    """The distribution of strings given their lengths.

    Raises:
        PrepareError: the grammar cannot be read or has no strings.
    """
    greatest = max(options.max_length, options.test_max_length)
    if options.grammar is None:
        return distribution_of(options.language(), options.parameters, greatest)
    grammar = read_grammar(options.grammar)
    try:
        return GrammarDistribution(grammar, greatest)
    except ValueError as error:
        raise PrepareError(f"{options.grammar}: {error}") from error


def lengths_of(distribution: Distribution, split: str, options: Options) -> list[int]:
    """The lengths that strings of a split may have.

    Raises:
        PrepareError: there are none.
    """
    least, greatest = options.ranges()[split]
    lengths = distribution.lengths(least, greatest)
    if not lengths:
        raise PrepareError(f"{split}: {options.name()} has no string with a length from {least} to {greatest}")
    return lengths


def _generate_split(distribution: Distribution, lengths: list[int], split: str, options: Options) -> StringSet:
    rng = stream(options.test_seed if split == "test" else options.seed, split)
    if split == "test":
        wanted = [length for length in lengths for _ in range(options.test_per_length)]
    else:
        size = options.train_size if split == "train" else options.valid_size
        wanted = _draw_lengths(lengths, size, options.batch_size, rng)
    drawn = (distribution.sample(length, rng) for length in wanted)
    strings = list(progress(drawn, label=f"{CORPUS}: {split}", total=len(wanted)))
    values = distribution.log_probabilities(strings)
    by_position = dict(progress(values, label=f"{CORPUS}: {split}, log-probabilities", total=len(strings)))
    return StringSet(lengths, strings, [by_position[i] for i in range(len(strings))])


def _draw_lengths(lengths: Sequence[int], size: int, batch_size: int, rng: random.Random) -> list[int]:
    """``size`` lengths, one for each ``batch_size`` in a row."""
    batch_size = min(batch_size, size)
    number = math.ceil(size / batch_size)
    batches = [pick(rng, lengths) for _ in range(number)]
    return [length for length in batches for _ in range(batch_size)][:size]


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`generate` and :func:`.output.corpus_folder`; or binarising failed.
    """
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        corpus = generate(options)
        for split, strings in corpus.splits.items():
            write_strings(new / TEXT, split, strings)
        dictionary = write_alphabet(new, corpus.vocabulary)
        bounds = {split: lower_bound(strings) for split, strings in corpus.splits.items()}
        write_lines(new / LOWER_BOUND_NAME, [json.dumps(bounds, indent=2)])
        _write_attachments(options, corpus, new)
        _write_grammar(options, new)
        if options.binarise:
            binarise_language(new, dictionary=dictionary)
        Manifest(
            corpus=CORPUS,
            options=options.for_manifest(),
            splits={split: _counts(strings) for split, strings in corpus.splits.items()},
            inputs={} if options.grammar is None else {options.grammar.name: sha256_of(options.grammar)},
        ).write(new)


def _write_attachments(options: Options, corpus: FormalLanguageCorpus, folder: Path) -> None:
    if options.attachments:
        parse = options.language().attachments
        assert parse is not None
        for split, strings in corpus.splits.items():
            write_lines(folder / TEXT / f"{split}.attach", (" ".join(map(str, parse(x))) for x in strings.strings))


def _write_grammar(options: Options, folder: Path) -> None:
    """Write the grammar, if there is one, as it was before anything was removed."""
    if options.grammar is not None:
        grammar = read_grammar(options.grammar)
    elif (make := options.language().grammar) is not None:
        grammar = parse_grammar(make(options.parameters))
    else:
        return
    (folder / GRAMMAR_NAME).write_text(format_grammar(grammar), encoding="utf-8", newline="\n")


def _counts(strings: StringSet) -> dict[str, Any]:
    """Counts of one split for the manifest."""
    by_length = Counter(map(len, strings.strings))
    return {
        **counts_of(strings.strings),
        "possible_lengths": len(strings.lengths),
        "strings_by_length": {str(length): by_length[length] for length in sorted(by_length)},
    }
