"""The pieces of the words of a treebank: cut by SentencePiece or as by GPT-2, and written with spans over them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..errors import PrepareError
from ..layout import PIECE_MODEL_NAME, SUFFIX, TOKENIZER_NAME, WORD_MARK
from ..progress import progress
from ..text.byte_pieces import END, ByteEncoder, read_tokenizer
from ..text.output import write_columns
from ..text.sentence_pieces import Encoder, read_model
from ..text.streams import read_lines
from .side_files import span_lines
from .spans import depths, parse_spans, piece_spans


class SentencePieceCutter:
    """Cuts each word by itself with a SentencePiece model.

    Attributes:
        pieces: all that there are.
    """

    def __init__(self, model: bytes) -> None:
        self._model, self._encoder = model, Encoder(model)
        self.pieces = self._encoder.pieces()
        self._known: dict[str, list[str]] = {}

    def cut(self, words: Sequence[str], place: str) -> list[list[str]]:
        """The pieces of each word of a sentence; ``place`` says where it stands.

        Raises:
            PrepareError: a word holds SentencePiece's mark for spaces, or nothing is left of it.
        """
        new = [word for word in dict.fromkeys(words) if word not in self._known]
        for word, pieces in zip(new, self._encoder.encode(new), strict=True):
            if WORD_MARK in word:
                raise PrepareError(f"{place}: the word {word!r} holds U+2581, SentencePiece's mark for a space")
            if "<unk>" in word:
                raise PrepareError(f"{place}: the word {word!r} holds <unk>, which SentencePiece does not read as text")
            if not pieces:
                raise PrepareError(f"{place}: the SentencePiece model leaves nothing of the word {word!r}")
            self._known[word] = pieces
        return [self._known[word] for word in words]

    def write(self, folder: Path) -> None:
        """Write ``spm.model``, with which text is cut in the same way."""
        (folder / PIECE_MODEL_NAME).write_bytes(self._model)


class GPT2Cutter:
    """Cuts each word, with a blank before it unless it is the first one, as GPT-2 cuts the words joined by blanks.

    It has what :class:`SentencePieceCutter` has.
    """

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer, self._encoder = tokenizer, ByteEncoder(tokenizer)
        self.pieces = self._encoder.pieces()
        self._known: dict[str, list[str]] = {}

    def cut(self, words: Sequence[str], place: str) -> list[list[str]]:
        """The pieces of each word.

        Raises:
            PrepareError: a word holds what GPT-2 has between texts, or the tokenizer lacks a part of it.
        """
        parts = [f"{' ' * (number > 0)}{word}" for number, word in enumerate(words)]
        new = [part for part in dict.fromkeys(parts) if part not in self._known]
        for part, pieces in zip(new, self._encoder.encode(new), strict=True):
            if END in part:
                raise PrepareError(f"{place}: the word {part.strip()!r} holds {END}, which separates texts")
            if self._encoder.decode(pieces) != part:
                raise PrepareError(f"{place}: the tokenizer of GPT-2 lacks pieces of the word {part.strip()!r}")
            self._known[part] = pieces
        return [self._known[part] for part in parts]

    def write(self, folder: Path) -> None:
        """Write ``tokenizer.json``."""
        (folder / TOKENIZER_NAME).write_text(self._tokenizer, encoding="utf-8", newline="\n")


PieceCutter = SentencePieceCutter | GPT2Cutter
"""Cuts the words of sentences into pieces, so that no piece spans two words."""


def read_cutter(piece_model: Path | None, gpt2: Path | None) -> PieceCutter | None:
    """The cutter of a SentencePiece model or of a folder of GPT-2, or None if neither is given.

    Raises:
        PrepareError: it cannot be read.
    """
    if gpt2 is not None:
        return GPT2Cutter(read_tokenizer(gpt2, "--gpt2"))
    return None if piece_model is None else SentencePieceCutter(read_model(piece_model))


def write_split_in_pieces(text: Path, split: str, cutter: PieceCutter) -> tuple[Counter[str], int, int]:
    """Write the pieces of a split and the spans over them; return the pieces' counts and the maximum length and
    depth."""
    (text / f"{split}.spans").rename(text / f"{split}.word-spans")
    read = [read_lines(text / f"{split}.{name}") for name in ("words", "word-spans", "origin")]
    tokens: Counter[str] = Counter()
    longest = deepest = 0

    def rows() -> Iterator[tuple[str, ...]]:
        nonlocal longest, deepest
        for words, spans, origin in progress(zip(*read, strict=True), label=f"treebank: pieces of {split}", total=None):
            cut = cutter.cut(words.split(" "), ", line ".join(origin.split("\t")))
            lengths = [len(word) for word in cut]
            pieces = list(chain.from_iterable(cut))
            nodes = piece_spans(parse_spans(spans), lengths)
            tokens.update(pieces)
            longest = max(longest, len(pieces))
            deepest = max(deepest, *depths(nodes, len(pieces)))
            yield " ".join(pieces), *span_lines(nodes, len(pieces)), " ".join(map(str, lengths))

    write_columns([text / f"{split}.{name}" for name in (SUFFIX, "spans", "attach", "pieces-per-word")], rows())
    return tokens, longest, deepest
