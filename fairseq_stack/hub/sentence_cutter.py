"""Sentences split into the tokens of a language model, and the words that the tokens form."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.hub.interface import LanguageModelHub
from fairseq_stack.hub.parse_beams import parses_sentences
from fairseq_stack.hub.strings import log_probabilities
from fairseq_stack_preprocess.layout import WORD_MARK


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

    def __init__(self, hub: LanguageModelHub) -> None:
        self._hub = hub
        self._predicts_unknown = _predicts_unknown(hub)

    def cut(self, text: str, number: int = 1) -> CutSentence:
        """A sentence split into tokens; ``number`` is for errors.

        Raises:
            UserError: as for :meth:`encode`; or the pieces of the sentence do not make words.
        """
        dictionary = self._hub.tgt_dict
        pieces, tokens = self.encode(text, number)
        words, starts = _words(text, pieces, number)
        end = dictionary[dictionary.eos()]
        return CutSentence((*words, end), (*starts, len(pieces), len(pieces) + 1), tuple(pieces), tokens)

    def encode(self, text: str, number: int = 1) -> tuple[list[str], Tensor]:
        """The n tokens of a sentence as text, and their indices with the end, (n + 1,); ``number`` is for errors.

        Raises:
            UserError: the sentence is longer than the model accepts, or has a word that it cannot predict.
        """
        hub, dictionary = self._hub, self._hub.tgt_dict
        pieces = hub.cut(text)
        tokens = dictionary.encode_line(" ".join(pieces), add_if_not_exist=False).long()
        if len(tokens) > hub.max_positions:
            raise UserError(
                f"sentence {number} has {len(tokens):,} tokens with its end; the model accepts {hub.max_positions:,}"
            )
        unknown = [piece for piece, token in zip(pieces, tokens.tolist(), strict=False) if token == dictionary.unk()]
        if unknown and not self._predicts_unknown:
            raise UserError(
                f"sentence {number}: the dictionary of the model lacks {unknown[0]!r}, and the model was trained "
                "without <unk> (--compact-vocab-unk)"
            )
        if parses_sentences(hub) and dictionary.eos() in tokens[:-1]:
            raise UserError(f"sentence {number}: {dictionary.eos_word} ends a sentence, and cannot be a word of one")
        return pieces, tokens


@torch.no_grad()
def _predicts_unknown(hub: LanguageModelHub) -> bool:
    """Whether <unk> has a probability."""
    log_probs = log_probabilities(hub, torch.tensor([[hub.tgt_dict.eos()]], device=hub.device))
    return bool(log_probs[0, 0, hub.tgt_dict.unk()].isfinite())


def _words(text: str, pieces: list[str], number: int) -> tuple[list[str], list[int]]:
    """The words of a sentence, and where the first piece of each is."""
    if not any(piece.startswith(WORD_MARK) for piece in pieces):
        return pieces, list(range(len(pieces)))
    words = text.split()
    starts = [place for place, piece in enumerate(pieces) if piece.startswith(WORD_MARK)]
    if len(words) != len(starts):
        raise UserError(
            f"sentence {number} has {len(words)} words, but its pieces make {len(starts)}: {' '.join(pieces)}"
        )
    return words, starts
