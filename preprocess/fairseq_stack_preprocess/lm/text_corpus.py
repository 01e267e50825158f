"""The corpus ``lm``: text with one sentence per line, for language modelling, in words or in pieces of words.

Input: a file for each split, plain or gzipped. Files in ``text/``: ``{train,valid,test}.txt``. Each line is a sentence,
and fairseq ends it with EOS. As a stream, a split is one line with ``<eos>`` after each sentence, as the recurrent
language models of the literature read Mikolov's text of the Penn Treebank; fairseq adds one EOS at the very end.

With pieces, the model that cuts sentences is ``spm.model``, and the dictionary, ``text/vocabulary.txt``, has all its
pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ..errors import PrepareError, require_ranges
from ..layout import PIECE_MODEL_NAME, SPLITS, SUFFIX, TEXT, VOCABULARY_NAME, WORD_MARK
from ..progress import progress
from ..text.binarise import binarise_language
from ..text.fairseq_words import check_white_space, check_word
from ..text.manifest import Manifest, options_without, sha256_of
from ..text.output import corpus_folder, write_lines
from ..text.sentence_pieces import Encoder, count_unknown, read_model, train_model, write_dictionary
from ..text.streams import read_lines, require_file

CORPUS = "lm"
END = "<eos>"
EMPTY = "empty line"


@dataclass(frozen=True)
class Options:
    """The options of the corpus.

    Attributes:
        train: the file with the sentences of train (likewise ``valid`` and ``test``; None: no test set).
        stream: whether a split is written as one line.
        pieces: train a SentencePiece model of at most this many pieces; None: the tokens are words.
        piece_model: use this SentencePiece model.
        limit: the maximum number of sentences in each split, the first ones; None: all.
        binarise: whether fairseq's binary format is written as well.

    Raises:
        PrepareError: a value is out of range, or a stream is to be in pieces.
    """

    train: Path
    valid: Path
    test: Path | None = None
    stream: bool = False
    pieces: int | None = None
    piece_model: Path | None = None
    limit: int | None = None
    binarise: bool = True

    def __post_init__(self) -> None:
        require_ranges(self, limit=(1, None), pieces=(2, None))
        if self.stream and self.in_pieces():
            raise PrepareError("--stream is for words; it cannot be combined with --pieces or --piece-model")

    def in_pieces(self) -> bool:
        """Whether the tokens are pieces."""
        return self.pieces is not None or self.piece_model is not None

    def paths(self) -> dict[str, Path]:
        """The file of each split."""
        paths = {"train": self.train, "valid": self.valid, "test": self.test}
        return {split: path for split, path in paths.items() if path is not None}


def prepare(options: Options, folder: Path, *, force: bool = False) -> None:
    """Write the corpus into ``folder``, complete or not at all.

    Raises:
        PrepareError: a file cannot be read (:mod:`.streams`), or holds no sentence; a word would mislead fairseq, is
            ``<eos>`` in a stream, or holds SentencePiece's mark for a space; see :mod:`.sentence_pieces` and
            :func:`.output.corpus_folder`; or binarising failed.
    """
    paths = options.paths()
    for path in paths.values():
        require_file(path)
    dropped = {split: Counter[str]() for split in paths}
    inputs = {f"{split}/{path.name}": path for split, path in paths.items()}
    if options.piece_model is not None:
        inputs[options.piece_model.name] = options.piece_model
    with corpus_folder(folder, binarise=options.binarise, force=force) as new:
        text = new / TEXT
        encoder = _write_model(new, options) if options.in_pieces() else None
        written = {split: _write(text, split, options, encoder, dropped[split]) for split in paths}
        train, _ = written["train"]
        known = train.keys() if encoder is None else encoder.pieces()
        splits = {
            split: counts | count_unknown(tokens, known, f"{CORPUS}: {split}")
            for split, (tokens, counts) in written.items()
        }
        dictionary = None
        if encoder is not None:
            dictionary = text / VOCABULARY_NAME
            write_dictionary(encoder.pieces(), train, dictionary)
        if options.binarise:
            binarise_language(new, dictionary=dictionary, splits=list(paths))
        Manifest(
            corpus=CORPUS,
            options=options_without(options, *SPLITS, "piece_model"),
            splits=splits,
            dropped=dropped,
            inputs={name: sha256_of(path) for name, path in inputs.items()},
            packages=("sentencepiece",) if options.in_pieces() else (),
        ).write(new)


def _write_model(folder: Path, options: Options) -> Encoder:
    """Write the SentencePiece model."""
    if options.piece_model is not None:
        model = read_model(options.piece_model)
    else:
        assert options.pieces is not None
        model = train_model(_sentences(options.train, options, Counter()), pieces=options.pieces)
    (folder / PIECE_MODEL_NAME).write_bytes(model)
    return Encoder(model)


def _sentences(path: Path, options: Options, dropped: Counter[str]) -> Iterator[str]:
    """The sentences of a file, with single spaces between words; empty lines are dropped and counted."""

    def read() -> Iterator[str]:
        for number, line in enumerate(read_lines(path), start=1):
            words, place = line.split(), f"{path}, line {number}"
            if not options.in_pieces():
                _check(line, words, place, options.stream)
            elif WORD_MARK in line:
                raise PrepareError(f"{place}: holds U+2581, SentencePiece's mark for a space")
            elif "<unk>" in line:
                raise PrepareError(f"{place}: holds <unk>, which SentencePiece does not read as text")
            if words:
                yield " ".join(words)
            else:
                dropped[EMPTY] += 1

    return islice(read(), options.limit)


def _check(line: str, words: list[str], place: str, stream: bool) -> None:
    """Raise PrepareError if fairseq would read other words."""
    check_white_space(line, place)
    for word in words:
        check_word(word, place)
    if stream and END in words:
        raise PrepareError(f"{place}: holds {END}; expected text without marks at the ends of sentences")


def _write(
    text: Path, split: str, options: Options, encoder: Encoder | None, dropped: Counter[str]
) -> tuple[Counter[str], dict[str, Any]]:
    """Write the tokens of a split; return how often each occurs, and counts for the manifest."""
    path = options.paths()[split]
    sentences = _sentences(path, options, dropped)
    cut = (line.split(" ") for line in sentences) if encoder is None else encoder.encode(sentences)
    tokens: Counter[str] = Counter()
    lengths: list[int] = []

    def lines() -> Iterator[str]:
        for sentence in progress(cut, label=f"{CORPUS}: {split}", total=None):
            lengths.append(len(sentence))
            if not sentence:
                raise PrepareError(f"{path}: the SentencePiece model leaves nothing of sentence {len(lengths)}")
            tokens.update(sentence)
            yield " ".join(sentence)

    written = [" ".join(f"{line} {END}" for line in lines())] if options.stream else lines()
    write_lines(text / f"{split}.{SUFFIX}", written)
    if not lengths:
        raise PrepareError(f"{path}, line 1: the file holds no sentence")
    return tokens, {
        "sentences": len(lengths),
        "tokens": tokens.total(),
        "distinct_tokens": len(tokens),
        "longest": max(lengths),
    }
