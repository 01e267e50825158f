"""Sentences split into the tokens of a language model, and the words that the tokens form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.language_model import LanguageModel, Vocabulary


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
        if len(tokens) > model.max_positions:
            raise UserError(
                f"sentence {number} has {len(tokens):,} tokens with its end; the model accepts {model.max_positions:,}"
            )
        unknown = [piece for piece, token in zip(pieces, tokens.tolist(), strict=False) if token == vocabulary.unknown]
        if unknown and not self._predicts_unknown:
            raise UserError(
                f"sentence {number}: the dictionary of the model lacks {unknown[0]!r}, and the model was trained "
                "without <unk> (--compact-vocab-unk)"
            )
        if model.parses_sentences and vocabulary.end in tokens[:-1]:
            raise UserError(
                f"sentence {number}: {vocabulary.symbols[vocabulary.end]} ends a sentence, and cannot be a word of one"
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
    if vocabulary.are_words(pieces):
        return pieces, list(range(len(pieces)))
    words = text.split()
    starts = [place for place, piece in enumerate(pieces) if place == 0 or piece.startswith(vocabulary.word_mark)]
    if len(words) != len(starts):
        raise UserError(
            f"sentence {number} has {len(words)} words, but its pieces make {len(starts)}: {' '.join(pieces)}"
        )
    return words, starts
