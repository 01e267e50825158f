"""What the scores of sentences need of a language model, whether it is a checkpoint or a folder of transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor, nn


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
    """

    symbols: Sequence[str]
    pad: int
    end: int
    unknown: int | None
    word_mark: str
    marks_first_word: bool = True

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
