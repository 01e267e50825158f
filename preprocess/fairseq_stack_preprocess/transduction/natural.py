"""The task ``natural_agreement``: the number of a verb from the words of a sentence before it.

The file of each split has a line for each sentence: ``VBZ`` or ``VBP`` (a singular or a plural verb), and the words
before the verb, separated by spaces. The two fields are separated by a comma where the name of the file ends in
``.csv`` or ``.csv.gz``, with quotation marks around a field as usual in such files; otherwise by a tab, as in
``numpred.train`` of Linzen et al. (2016).

The input of a pair is the words; the target is a blank for each word except the last one, and there the label. Words
that are not among the most frequent ones of train become ``<unknown>``. Files: see :mod:`.pair_files`.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import SPLITS
from ..progress import progress
from ..text.fairseq_words import check_white_space, check_word
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder
from ..text.streams import read_lines, require_file
from .pair_files import binarise, write_pairs, write_task
from .pairs import Alphabet, Pair, Word
from .task_options import CORPUS, NATURAL

LABELS = ("VBZ", "VBP")
UNKNOWN, BLANK = "<unknown>", "<blank>"


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        train: the file of train (likewise ``valid``, ``test``).
        most_words: the maximum number of different words, the most frequent ones of train.
        max_length: sentences with more words are dropped; None: none.
        limit: the maximum number of sentences in each split, the first ones; None: all.
        strip_cr: whether lines may end with a carriage return.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    train: Path
    valid: Path
    test: Path
    most_words: int = 10_000
    max_length: int | None = None
    limit: int | None = None
    strip_cr: bool = False
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, most_words=(1, None), max_length=(1, None), limit=(1, None))

    def paths(self) -> dict[str, Path]:
        """The file of each split."""
        return {"train": self.train, "valid": self.valid, "test": self.test}


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence before its verb, and the verb's number."""

    words: Word
    label: str


def check_files(options: Options) -> None:
    """Raise PrepareError if the path of a split is missing or is not a file."""
    for split, path in options.paths().items():
        if not os.path.lexists(path):
            raise PrepareError(f"--{split} {path}: no such file")
        require_file(path)


def read_sentences(path: Path, *, strip_cr: bool = False) -> Iterator[Sentence]:
    """The sentences of a file.

    Raises:
        PrepareError: a line does not hold a label and words; a word would mislead fairseq or has a meaning here; or
            :func:`.streams.read_lines` raised it. The message has the line.
    """
    separated_by_commas = path.name.removesuffix(".gz").endswith(".csv")
    for number, line in enumerate(read_lines(path, strip_cr=strip_cr), start=1):
        place = f"{path}, line {number}"
        fields = _split_at_commas(line, place) if separated_by_commas else line.split("\t")
        if len(fields) != 2:
            separator = "a comma" if separated_by_commas else "a tab"
            raise PrepareError(
                f"{place}: expected a label and words, separated by {separator}, got {len(fields)} fields"
            )
        label, text = fields
        if label not in LABELS:
            raise PrepareError(f"{place}: the label must be {' or '.join(LABELS)}, got {label!r}")
        yield Sentence(_words(text, place), label)


def _split_at_commas(line: str, place: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error as error:
        raise PrepareError(f"{place}: {error}; a field that contains a comma must be quoted") from error


def _words(text: str, place: str) -> Word:
    check_white_space(text, place)
    words = tuple(text.split())
    if not words:
        raise PrepareError(f"{place}: no words after the label")
    for word in words:
        check_word(word, place)
        if word in (UNKNOWN, BLANK):
            raise PrepareError(f"{place}: {word} is reserved; it cannot be a word of the text")
    return words


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`check_files`, :func:`read_sentences` and :func:`.output.corpus_folder`; a split has no
            sentence left; or binarising failed.
    """
    check_files(options)
    dropped = {split: Counter[str]() for split in SPLITS}
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        known = _frequent_words(options)
        alphabet = Alphabet((*known, UNKNOWN, *LABELS, BLANK), BLANK, LABELS)
        splits = {split: _write(new, split, options, alphabet, dropped[split]) for split in SPLITS}
        longest = {split: max(map(int, counts["pairs_by_length"])) for split, counts in splits.items()}
        write_task(new, NATURAL, alphabet, longest)
        if options.binarise:
            binarise(new)
        Manifest(
            corpus=CORPUS,
            options={"task": NATURAL, **options_without(options, *SPLITS)},
            splits=splits,
            dropped=dropped,
            inputs={f"{split}/{path.name}": sha256_of(path) for split, path in options.paths().items()},
        ).write(new)


def _frequent_words(options: Options) -> list[str]:
    """The most frequent words of train, frequent ones first, ties in the order of their code points."""
    label = f"{CORPUS}: words of train"
    counts = Counter[str]()
    for sentence in progress(_kept("train", options, Counter()), label=label, total=None):
        counts.update(sentence.words)
    for word in ("<unk>", *LABELS):
        counts.pop(word, None)
    return sorted(counts, key=lambda word: (-counts[word], word))[: options.most_words]


def _kept(split: str, options: Options, dropped: Counter[str]) -> Iterator[Sentence]:
    """The sentences of a split that are not dropped."""

    def short_enough() -> Iterator[Sentence]:
        for sentence in read_sentences(options.paths()[split], strip_cr=options.strip_cr):
            if options.max_length is None or len(sentence.words) <= options.max_length:
                yield sentence
            else:
                dropped[f"more than {options.max_length} words"] += 1

    return islice(short_enough(), options.limit)


def _write(folder: Path, split: str, options: Options, alphabet: Alphabet, dropped: Counter[str]) -> dict[str, Any]:
    """Write the text of a split; return its counts."""
    known, unknown = frozenset(alphabet.symbols), 0

    def pairs() -> Iterator[Pair]:
        nonlocal unknown
        for sentence in progress(_kept(split, options, dropped), label=f"{CORPUS}: {split}", total=None):
            words = tuple(word if word in known else UNKNOWN for word in sentence.words)
            unknown += words.count(UNKNOWN)
            yield Pair(words, (BLANK,) * (len(words) - 1) + (sentence.label,))

    counts = write_pairs(folder, split, pairs(), alphabet)
    if not counts["pairs"]:
        raise PrepareError(f"{options.paths()[split]}: no sentence is left; raise --max-length")
    return {**counts, "unknown_words": unknown}


def plan(options: Options) -> Iterator[str]:
    """What a run would read, in readable lines; nothing is written, and no file is opened."""
    check_files(options)
    for split, path in options.paths().items():
        yield f"{split}: {path.name}, {path.stat().st_size:,} bytes"
