"""The corpus ``treebank``: any phrase-structure trees in brackets, for language models that learn from trees.

Input: for each split, files of trees (one per line, or indented as ``.mrg`` files), or folders with ``.mrg`` files.
Traces, function tags, indices and wrappers are removed as for the Penn Treebank. Files: see
:mod:`.side_files`, and :mod:`.spans` for the trees.

The tokens are words, with classes for rare ones (:mod:`.word_classes`) or without; or pieces of words, by a
SentencePiece BPE model that is trained on the words of train, or one that is given, or as GPT-2 cuts them
(:mod:`.treebank_pieces`). No piece spans two words. With pieces, ``.spans`` and ``.attach`` are over pieces, and there
are also ``.word-spans`` and ``.pieces-per-word``; the model is ``spm.model`` or ``tokenizer.json``, and the dictionary
has all pieces of the model.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import SPLITS, TEXT, VOCABULARY_NAME
from ..text.binarise import binarise_language
from ..text.byte_pieces import TOKENIZER_FILES
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder
from ..text.sentence_pieces import count_unknown, train_model, write_dictionary
from ..text.streams import read_lines, require_file
from .side_files import (
    SplitReport,
    TreeFile,
    find_mrg_files,
    read_sentences,
    write_classes_as_text,
    write_split,
    write_words_as_text,
)
from .treebank_pieces import PieceCutter, SentencePieceCutter, read_cutter, write_split_in_pieces
from .word_classes import known_words

CORPUS = "treebank"
RARE_WORDS = ("classes", "keep")


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        train: files or folders with the trees of train (likewise ``valid``, ``test``).
        rare_words: ``classes``: words that occur at most once in train become classes; ``keep``: all words
            stay, and words of valid and test that are not in train are fairseq's ``<unk>``; None: ``classes``,
            or without effect if the tokens are pieces.
        pieces: train a SentencePiece model of at most this many pieces; None: the tokens are words.
        piece_model: use this SentencePiece model.
        gpt2: cut words into pieces as the tokenizer of this folder with a GPT-2 does.
        limit: the maximum number of sentences in each split, the first ones; None: all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range, or ``rare_words`` is given with pieces.
    """

    train: tuple[Path, ...]
    valid: tuple[Path, ...]
    test: tuple[Path, ...]
    rare_words: str | None = None
    pieces: int | None = None
    piece_model: Path | None = None
    gpt2: Path | None = None
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, limit=(1, None), pieces=(2, None))
        if self.rare_words is not None and self.rare_words not in RARE_WORDS:
            raise PrepareError(f"--rare-words must be one of {', '.join(RARE_WORDS)}, got {self.rare_words!r}")
        if self.rare_words is not None and self.in_pieces():
            raise PrepareError(
                "--rare-words is for words; it cannot be combined with --pieces, --piece-model or --gpt2"
            )

    def in_pieces(self) -> bool:
        """Whether the tokens are pieces."""
        return any(option is not None for option in (self.pieces, self.piece_model, self.gpt2))

    def paths(self) -> dict[str, tuple[Path, ...]]:
        """The paths given for each split."""
        return {"train": self.train, "valid": self.valid, "test": self.test}


def find_files(options: Options) -> dict[str, list[TreeFile]]:
    """The files of each split, in the given order; the files of a folder are sorted.

    Raises:
        PrepareError: a path does not exist, or is a folder without ``.mrg`` files.
    """
    return {split: list(_files(split, paths)) for split, paths in options.paths().items()}


def _files(split: str, paths: Sequence[Path]) -> Iterator[TreeFile]:
    for index, path in enumerate(paths):
        prefix = split if len(paths) == 1 else f"{split}/{index}"
        if path.is_dir():
            mrg_files = find_mrg_files(path)
            if not mrg_files:
                raise PrepareError(f"--{split} {path}: the folder holds no .mrg file")
            for file in mrg_files:
                yield TreeFile(file, f"{prefix}/{file.relative_to(path).as_posix()}")
        elif os.path.lexists(path):
            require_file(path)
            yield TreeFile(path, f"{prefix}/{path.name}")
        else:
            raise PrepareError(f"--{split} {path}: no such file or folder")


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: see :func:`find_files`, :func:`.brackets.read_trees`, :func:`.sentence_pieces.train_model` and
            :func:`.output.corpus_folder`; a split has no sentence; the model given cannot be read; or binarising
            failed.
    """
    files = find_files(options)
    cutter = read_cutter(options.piece_model, options.gpt2)
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        text = new / TEXT
        reports = {
            split: write_split(text, split, read_sentences(files[split]), corpus=CORPUS, limit=options.limit)
            for split in SPLITS
        }
        if options.in_pieces():
            tokens = _write_pieces(new, options, cutter)
        else:
            tokens = _write_words(text, options, reports["train"])
        if options.binarise:
            dictionary = text / VOCABULARY_NAME
            binarise_language(new, dictionary=dictionary if options.in_pieces() else None)
        _manifest(options, files, reports, tokens).write(new)


def _write_words(text: Path, options: Options, train: SplitReport) -> dict[str, dict[str, Any]]:
    """Write words, or classes, as text; return counts for each split."""
    if options.rare_words == "keep":
        tokens = {split: write_words_as_text(text, split, str) for split in SPLITS}
    else:
        known = known_words(train.words)
        tokens = {split: write_classes_as_text(text, split, known) for split in SPLITS}
    return {split: _token_counts(tokens[split], tokens["train"]) for split in SPLITS}


def _token_counts(tokens: Counter[str], train: Counter[str]) -> dict[str, Any]:
    """Counts of tokens for the manifest; the last one counts words that become ``<unk>``."""
    return {
        "tokens": tokens.total(),
        "distinct_tokens": len(tokens),
        "tokens_not_in_train": sum(count for token, count in tokens.items() if token not in train),
    }


def _write_pieces(folder: Path, options: Options, cutter: PieceCutter | None) -> dict[str, dict[str, Any]]:
    """Write pieces as text, the spans over them, the model and the dictionary; return counts for each split."""
    text = folder / TEXT
    if cutter is None:
        assert options.pieces is not None
        cutter = SentencePieceCutter(train_model(read_lines(text / "train.words"), pieces=options.pieces))
    cutter.write(folder)
    written = {split: write_split_in_pieces(text, split, cutter) for split in SPLITS}
    train = written["train"][0]
    write_dictionary(cutter.pieces, train, text / VOCABULARY_NAME)
    return {
        split: {
            **_token_counts(tokens, train),
            **count_unknown(tokens, cutter.pieces, f"{CORPUS}: {split}"),
            "longest_in_tokens": longest,
            "deepest_in_tokens": deepest,
        }
        for split, (tokens, longest, deepest) in written.items()
    }


def _manifest(
    options: Options,
    files: Mapping[str, Sequence[TreeFile]],
    reports: Mapping[str, SplitReport],
    tokens: Mapping[str, Mapping[str, Any]],
) -> Manifest:
    inputs = {file.name: sha256_of(file.path) for split in SPLITS for file in files[split]}
    if options.piece_model is not None:
        inputs[options.piece_model.name] = sha256_of(options.piece_model)
    if options.gpt2 is not None:
        paths = (options.gpt2 / name for name in TOKENIZER_FILES)
        inputs |= {path.name: sha256_of(path) for path in paths if path.is_file()}
    return Manifest(
        corpus=CORPUS,
        options=options_without(options, *SPLITS, "piece_model", "gpt2"),
        splits={s: {"files": len(files[s]), **reports[s].counts(), **tokens[s]} for s in SPLITS},
        dropped={split: report.dropped for split, report in reports.items()},
        inputs=inputs,
        packages=() if not options.in_pieces() else ("tokenizers",) if options.gpt2 else ("sentencepiece",),
    )
