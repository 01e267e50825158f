"""What scores of sentences need of a language model, a checkpoint or a folder of transformers, and its sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of a language model.

    Attributes:
        symbols: each token as text.
        pad: the index that fills the ends of shorter strings.
        end: the index of the end of a sentence.
        unknown: the index of the unknown token, or None.
        word_mark: how the first token of a word begins, where tokens are pieces of words.
        marks_first_word: whether the first word of a sentence has the mark as well.
        classes: the indices of the classes of unknown words, if the data of the model have such classes.
    """

    symbols: Sequence[str]
    pad: int
    end: int
    unknown: int | None
    word_mark: str
    marks_first_word: bool = True
    classes: frozenset[int] = frozenset()

    def unknowns(self) -> list[int]:
        """The indices of the tokens that stand for words that the model does not know."""
        return [*([] if self.unknown is None else [self.unknown]), *self.classes]

    def beginnings(self) -> list[int]:
        """The indices of the tokens with the mark of words."""
        return [index for index, symbol in enumerate(self.symbols) if symbol.startswith(self.word_mark)]

    def are_words(self, tokens: Sequence[str]) -> bool:
        """Whether the tokens of a sentence are words: pieces of words would have a mark."""
        return self.marks_first_word and not any(token.startswith(self.word_mark) for token in tokens)


class LanguageModel(Protocol):
    """A language model that predicts a sentence from its first token to its end.

    Attributes:
        vocabulary: its tokens.
        architecture: the name of its architecture.
        max_positions: the maximum number of tokens of a sentence, with its end.
        parses_sentences: whether it also predicts the parses of sentences.
        device: where it computes.
    """

    @property
    def vocabulary(self) -> Vocabulary: ...

    @property
    def architecture(self) -> str: ...

    @property
    def max_positions(self) -> int: ...

    @property
    def parses_sentences(self) -> bool: ...

    @property
    def device(self) -> torch.device: ...

    def as_language_model(self) -> LanguageModel:
        """The model itself; what translates raises UserError here."""

    def cut(self, sentence: str) -> list[str]:
        """The tokens of a sentence as text."""

    def indices(self, tokens: Sequence[str]) -> list[int]:
        """The indices of the tokens of a sentence, which may be unknown.

        Raises:
            UserError: one of them cannot be in a sentence.
        """

    def log_probabilities(self, targets: Tensor) -> Tensor:
        """The log-probabilities (B, n, V), in nats, of all tokens at the places of ``targets`` (B, n).

        Sentences begin at the first place, and are padded at the end.
        """

    def parameters(self) -> Iterator[nn.Parameter]:
        """As of a torch module."""

    def to(self, device: Any) -> Self:
        """As of a torch module."""


@dataclass(frozen=True)
class CutSentence:
    """A sentence of n tokens.

    Attributes:
        words: the words, and the end.
        starts: the place of the first token of each of them, ascending, and n + 1.
        pieces: the tokens as text, n.
        tokens: (n + 1,), with the end.
    """

    words: tuple[str, ...]
    starts: tuple[int, ...]
    pieces: tuple[str, ...]
    tokens: Tensor


class Cutter:
    """Splits sentences into the tokens of a language model."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._predicts_unknown = _predicts_unknown(model)

    def cut(self, text: str, number: int = 1) -> CutSentence:
        """A sentence split into tokens; ``number`` is for errors.

        Raises:
            UserError: as for :meth:`encode`; or the pieces of the sentence do not make words.
        """
        vocabulary = self._model.vocabulary
        pieces, tokens = self.encode(text, number)
        words, starts = _words(text, pieces, vocabulary, number)
        end = vocabulary.symbols[vocabulary.end]
        return CutSentence((*words, end), (*starts, len(pieces), len(pieces) + 1), tuple(pieces), tokens)

    def encode(self, text: str, number: int = 1) -> tuple[list[str], Tensor]:
        """The n tokens of a sentence as text, and their indices with the end, (n + 1,); ``number`` is for errors.

        Raises:
            UserError: the sentence is longer than the model accepts, or has a word that it cannot predict.
        """
        model, vocabulary = self._model, self._model.vocabulary
        pieces = model.cut(text)
        tokens = torch.tensor([*model.indices(pieces), vocabulary.end])
        name = f"sentence {number} ({shorten(text, 50)})"
        if len(tokens) > model.max_positions:
            raise UserError(
                f"{name} has {len(tokens):,} tokens with its end; the model accepts {model.max_positions:,}"
            )
        unknown = [piece for piece, token in zip(pieces, tokens.tolist(), strict=False) if token == vocabulary.unknown]
        if unknown and not self._predicts_unknown:
            raise UserError(
                f"{name}: the dictionary of the model lacks {unknown[0]!r}, and the model was trained "
                "without <unk> (--compact-vocab-unk)"
            )
        if model.parses_sentences and vocabulary.end in tokens[:-1]:
            raise UserError(
                f"{name}: {vocabulary.symbols[vocabulary.end]} ends a sentence, and cannot be a word of one"
            )
        return pieces, tokens


@torch.no_grad()
def _predicts_unknown(model: LanguageModel) -> bool:
    """Whether the unknown token, if there is one, has a probability."""
    vocabulary = model.vocabulary
    if vocabulary.unknown is None:
        return True
    log_probs = model.log_probabilities(torch.tensor([[vocabulary.end]], device=model.device))
    return bool(log_probs[0, 0, vocabulary.unknown].isfinite())


def _words(text: str, pieces: list[str], vocabulary: Vocabulary, number: int) -> tuple[list[str], list[int]]:
    """The words of a sentence, and where the first piece of each is."""
    words = text.split()
    if vocabulary.are_words(pieces):
        return words if len(words) == len(pieces) else pieces, list(range(len(pieces)))
    starts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith(vocabulary.word_mark)]
    if len(words) != len(starts):
        raise UserError(
            f"sentence {number} has {len(words)} words, but its pieces make {len(starts)}: {' '.join(pieces)}"
        )
    return words, starts
