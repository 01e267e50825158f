"""Turns a user's text into the tokens of a model, as was done with the text of its corpus."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairseq_stack.companions import MANIFEST
from fairseq_stack.errors import UserError
from fairseq_stack.files import read_text
from fairseq_stack_preprocess.layout import WORD_MARK
from fairseq_stack_preprocess.mt.split_text import normalizer
from fairseq_stack_preprocess.mt.translation_options import CORPUS as TRANSLATION
from fairseq_stack_preprocess.text.sentence_pieces import Encoder, made_blank

Tokenize = Callable[[str], str]
"""Turns a sentence into tokens separated by spaces."""


def tokenizer_of(companions: Mapping[str, Path], language: str | None) -> Tokenize | None:
    """The function that cuts a sentence into pieces, or None if no SentencePiece model is among the companions.

    Args:
        companions: what lies next to a checkpoint.
        language: a language of a translation model; None for a language model.

    Raises:
        UserError: a companion cannot be used.
    """
    path = piece_model(companions, language)
    return None if path is None else piece_tokenizer(path, companions.get(MANIFEST), language)


def piece_model(companions: Mapping[str, Path], language: str | None) -> Path | None:
    """The SentencePiece model among the companions, if there is one; see :func:`tokenizer_of`."""
    return companions.get("spm.model" if language is None else f"sentencepiece.{language}.model")


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
        encoder = Encoder(model.read_bytes())
    except (RuntimeError, OSError) as error:
        raise UserError(f"{model} is not a SentencePiece model") from error
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
    try:
        content: Any = json.loads(read_text(manifest))
        if content["corpus"] != TRANSLATION:
            return lambda sentence: sentence
        return normalizer(language, content["options"]["normalization"], content["options"]["moses"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{manifest} is not the manifest of a corpus") from error
