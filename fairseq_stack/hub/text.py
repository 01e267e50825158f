"""Turns a user's text into the tokens of a model, as was done with the text of its corpus."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairseq_stack.companions import MANIFEST
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text, reading_as
from fairseq_stack_preprocess.errors import PrepareError
from fairseq_stack_preprocess.layout import BYTE_MARK, PIECE_MODEL_NAME, TOKENIZER_NAME, WORD_MARK
from fairseq_stack_preprocess.mt.split_text import normalizer
from fairseq_stack_preprocess.mt.translation_options import CORPUS as TRANSLATION
from fairseq_stack_preprocess.text.byte_pieces import ByteEncoder
from fairseq_stack_preprocess.text.sentence_pieces import Encoder, made_blank, read_model
from fairseq_stack_preprocess.trees.tokens import has_classes
from fairseq_stack_preprocess.trees.word_classes import is_class, word_or_class

if TYPE_CHECKING:
    from fairseq.data import Dictionary

Tokenize = Callable[[str], str]
"""Turns a sentence into tokens separated by spaces."""


@dataclass(frozen=True)
class Pieces:
    """The pieces of words that a model reads and writes.

    Attributes:
        cut: turns a sentence into pieces separated by spaces.
        join: turns these into the sentence.
        word_mark: how the first piece of a word begins.
        marks_first_word: whether the first word of a sentence has the mark as well.
        classes: the indices of tokens that are classes of unknown words.
    """

    cut: Tokenize
    join: Tokenize
    word_mark: str = WORD_MARK
    marks_first_word: bool = True
    classes: frozenset[int] = frozenset()


def pieces_of(companions: Mapping[str, Path], language: str | None, dictionary: Dictionary) -> Pieces | None:
    """The pieces of a language, or its words with classes for rare ones; None if its tokens are words as written.

    Args:
        companions: what lies next to a checkpoint.
        language: a language of a translation model; None for a language model.
        dictionary: of the language.

    Raises:
        UserError: a companion cannot be used.
    """
    path = piece_model(companions, language)
    if path is not None:
        return Pieces(piece_tokenizer(path, companions.get(MANIFEST), language), joined)
    if language is None and TOKENIZER_NAME in companions:
        return _pieces_of_bytes(companions[TOKENIZER_NAME])
    try:
        if MANIFEST in companions and has_classes(companions[MANIFEST]):
            return _words_or_classes(dictionary)
    except PrepareError as error:
        raise UserError(str(error)) from error
    return None


def _words_or_classes(dictionary: Dictionary) -> Pieces:
    def cut(sentence: str) -> str:
        return " ".join(word_or_class(word, dictionary) for word in sentence.split())

    classes = (index for index, symbol in enumerate(dictionary.symbols) if is_class(symbol))
    return Pieces(cut, str, classes=frozenset(classes))


def _pieces_of_bytes(path: Path) -> Pieces:
    with reading_as("a tokenizer of bytes", path):
        encoder = ByteEncoder(read_text(path))

    def cut(sentence: str) -> str:
        (pieces,) = encoder.encode([" ".join(sentence.split())])
        return " ".join(pieces)

    def join(pieces: str) -> str:
        return encoder.decode(pieces.split(" ")).strip()

    return Pieces(cut, join, BYTE_MARK, marks_first_word=False)


def piece_model(companions: Mapping[str, Path], language: str | None) -> Path | None:
    """The SentencePiece model among the companions, if there is one; see :func:`pieces_of`."""
    return companions.get(PIECE_MODEL_NAME if language is None else f"sentencepiece.{language}.model")


def piece_tokenizer(model: Path, manifest: Path | None, language: str | None) -> Tokenize:
    """The function that cuts a sentence into the pieces of a SentencePiece model.

    Args:
        model: the SentencePiece model.
        manifest: of the corpus, which says how text was normalised.
        language: a language of a translation model; None for a language model, whose text is not normalised.

    Raises:
        UserError: a file cannot be used.
    """
    try:
        encoder = Encoder(read_model(model))
    except PrepareError as error:
        raise UserError(str(error)) from error
    normalize = _normalizer(manifest, language)

    def tokenize(sentence: str) -> str:
        (pieces,) = encoder.encode(made_blank([normalize(sentence)]))
        return " ".join(pieces)

    return tokenize


def joined(pieces: str) -> str:
    """The sentence that SentencePiece cut into ``pieces``."""
    return pieces.replace(" ", "").replace(WORD_MARK, " ").strip()


def _normalizer(manifest: Path | None, language: str | None) -> Callable[[str], str]:
    if manifest is None or language is None:
        return lambda sentence: sentence
    with reading_as("a manifest of fairseq-stack prepare", manifest):
        content = json.loads(read_text(manifest))
        if content.get("corpus") != TRANSLATION:
            return lambda sentence: sentence
        normalization, moses = content["options"]["normalization"], content["options"]["moses"]
    return normalizer(language, normalization, moses)
