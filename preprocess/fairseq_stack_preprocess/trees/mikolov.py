"""The corpus ``ptb`` in Mikolov's form: text in lower case, numbers as ``N``, 10,000 words, the others ``<unk>``.

Input: ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``, plain or gzipped. Files in ``text/``:
``{train,valid,test}.txt``. As sentences, each line is a sentence, and fairseq ends it with EOS. As a stream, a
split is one line with ``<eos>`` after each sentence, as the recurrent language models of the literature read it;
fairseq adds one EOS at the very end.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import SPLITS, SUFFIX, TEXT
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.fairseq_words import check_white_space, check_word
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder, write_lines
from ..text.streams import read_lines, require_file

CORPUS = "ptb"
FORMS = ("sentences", "stream")
END = "<eos>"
EMPTY = "empty line"


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        raw: the folder with ``ptb.{train,valid,test}.txt``.
        form: ``sentences`` or ``stream``.
        limit: the maximum number of sentences in each split, the first ones; None: all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range.
    """

    raw: Path
    form: str = "sentences"
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, limit=(1, None))
        if self.form not in FORMS:
            raise PrepareError(f"--mikolov must be one of {', '.join(FORMS)}, got {self.form!r}")


def find_files(raw: Path) -> dict[str, Path]:
    """The file of each split.

    Raises:
        PrepareError: one is missing, or exists twice, plain and gzipped.
    """
    files: dict[str, Path] = {}
    for split in SPLITS:
        plain = raw / f"ptb.{split}.txt"
        paths = [path for path in (plain, plain.with_name(f"{plain.name}.gz")) if os.path.lexists(path)]
        if not paths:
            raise PrepareError(f"--raw {raw}: there is neither {plain.name} nor {plain.name}.gz")
        if len(paths) > 1:
            raise PrepareError(f"--raw {raw}: there are both {plain.name} and {plain.name}.gz; keep one of them")
        require_file(paths[0])
        files[split] = paths[0]
    return files


def sentences(path: Path, *, dropped: Counter[str]) -> Iterator[list[str]]:
    """The words of each line; empty lines are dropped and counted.

    Raises:
        PrepareError: a word would mislead fairseq, or is ``<eos>``; or :func:`.streams.read_lines` raised it.
    """
    for number, line in enumerate(read_lines(path), start=1):
        place = f"{path}, line {number}"
        check_white_space(line, place)
        words = line.split()
        for word in words:
            check_word(word, place)
        if END in words:
            raise PrepareError(f"{place}: holds {END}; expected text without marks at the ends of sentences")
        if words:
            yield words
        else:
            dropped[EMPTY] += 1


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`find_files`, :func:`sentences` and :func:`.output.corpus_folder`; a split has
            no sentence; or binarising failed.
    """
    files = find_files(options.raw)
    dropped = {split: Counter[str]() for split in SPLITS}
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        splits = {split: _write(new / TEXT, split, files[split], options, dropped[split]) for split in SPLITS}
        if options.binarise:
            binarise_language(new)
        Manifest(
            corpus=CORPUS,
            options={"mikolov": options.form, **options_without(options, "raw", "form")},
            splits=splits,
            dropped=dropped,
            inputs={path.name: sha256_of(path) for path in files.values()},
        ).write(new)


def _write(text: Path, split: str, path: Path, options: Options, dropped: Counter[str]) -> dict[str, Any]:
    """Write the text of a split; return its counts."""
    words: Counter[str] = Counter()
    lengths: list[int] = []

    def lines() -> Iterator[str]:
        read = islice(sentences(path, dropped=dropped), options.limit)
        for sentence in progress(read, label=f"{CORPUS}: {split}", total=None):
            words.update(sentence)
            lengths.append(len(sentence))
            yield " ".join(sentence)

    if options.form == "stream":
        stream = " ".join(f"{line} {END}" for line in lines())
        write_lines(text / f"{split}.{SUFFIX}", [stream])
    else:
        write_lines(text / f"{split}.{SUFFIX}", lines())
    if not lengths:
        raise PrepareError(f"{path}, line 1: the file holds no sentence")
    return {
        "sentences": len(lengths),
        "words": words.total(),
        "distinct_words": len(words),
        "unk": words["<unk>"],
        "longest": max(lengths),
    }


def plan(options: Options) -> Iterator[str]:
    """What a run would read, in readable lines; nothing is written, and no file is opened."""
    for split, path in find_files(options.raw).items():
        yield f"{split}: {path.name}, {path.stat().st_size:,} bytes"
