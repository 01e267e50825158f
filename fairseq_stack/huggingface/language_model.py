"""A language model of transformers for the scores of :mod:`fairseq_stack.hub`, as a checkpoint is; without fairseq."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from fairseq_stack.errors import UserError, reason_of
from fairseq_stack.hub.language_model import Vocabulary

WORD_MARKS = ("Ġ", "▁")
"""What the tokens that begin a word begin with: of byte-level BPE, as in GPT-2, and of SentencePiece."""


class HuggingFaceLanguageModel(nn.Module):
    """A :class:`~fairseq_stack.hub.language_model.LanguageModel` from a local folder, in float32.

    A sentence begins after the token that begins texts or, if the tokenizer has none, after the one that ends them. It
    ends with the token that ends texts. White space between words is one space, and none is put before the first word.

    Args:
        folder: the folder that ``save_pretrained`` of a model and a tokenizer wrote.

    Raises:
        UserError: the folder cannot be loaded, or does not hold a whole model and a tokenizer; the model reads what
            follows a token; or the tokenizer has no token that ends texts.
    """

    parses_sentences = False

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = os.fspath(folder)
        tokenizer, self._model = _loaded(self._folder)
        self._tokenizer = tokenizer
        if not tokenizer.tokenize("a"):  # transformers makes one without tokens if its files are missing
            raise UserError(f"{self._folder} has no tokenizer; expected tokenizer.json or the vocabulary of one")
        if tokenizer.eos_token_id is None:
            raise UserError(f"the tokenizer of {self._folder} has no token that ends a text (eos_token)")
        self._begin = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        self.vocabulary = _vocabulary(tokenizer)
        self._reserved = {*tokenizer.all_special_ids} - {self.vocabulary.unknown}
        self.eval()
        if self._reads_ahead():
            raise UserError(f"{self._folder}: the model reads what follows a token; expected a causal language model")

    @property
    def architecture(self) -> str:
        """The name of the model's class."""
        return type(self._model).__name__

    @property
    def max_positions(self) -> int:
        """The maximum number of tokens of a sentence, with its end."""
        return getattr(self._model.config, "max_position_embeddings", None) or sys.maxsize

    @property
    def device(self) -> torch.device:
        """Where the model computes."""
        device: torch.device = self._model.device
        return device

    def as_language_model(self) -> HuggingFaceLanguageModel:
        """The model itself."""
        return self

    def cut(self, sentence: str) -> list[str]:
        """The tokens of a sentence as text.

        Raises:
            UserError: nothing marks where words begin, and some are several tokens.
        """
        words = sentence.split()
        pieces: list[str] = self._tokenizer.tokenize(" ".join(words))
        if not self.vocabulary.are_words(pieces):
            return pieces
        if len(words) != len(pieces):
            raise UserError(
                f"the tokenizer of {self._folder} makes {len(pieces)} tokens of {len(words)} words, and does not mark "
                f"those that begin words; expected {' or '.join(WORD_MARKS)}"
            )
        return words  # as they are written, whereas the piece of an unknown word is <unk>

    def indices(self, tokens: Sequence[str]) -> list[int]:
        """See :class:`~fairseq_stack.hub.language_model.LanguageModel`."""
        ids: list[int] = self._tokenizer.convert_tokens_to_ids(list(tokens))
        for token, index in zip(tokens, ids, strict=True):
            if index in self._reserved:
                raise UserError(f"{' '.join(tokens)!r}: the tokenizer of {self._folder} reserves {token}; leave it out")
        return ids

    def log_probabilities(self, targets: Tensor) -> Tensor:
        """See :class:`~fairseq_stack.hub.language_model.LanguageModel`."""
        inputs = targets.roll(1, 1)
        inputs[:, 0] = self._begin
        # No mask: the padding at the ends has no influence on what is before it.
        logits: Tensor = self._model(input_ids=inputs, use_cache=False).logits
        return logits.log_softmax(-1)

    @torch.no_grad()
    def _reads_ahead(self) -> bool:
        """Whether the prediction of a token depends on that token."""
        one, other = self.log_probabilities(torch.tensor([[0, 0, 0], [0, 1, 0]]))[:, :2]
        return not torch.allclose(one, other, rtol=1e-4, atol=1e-4)


def _loaded(folder: str) -> tuple[PreTrainedTokenizerBase, Any]:
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        model, info = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, output_loading_info=True, **options
        )
    except Exception as error:  # transformers raises exceptions of every kind
        raise UserError(
            f"{folder} cannot be loaded as a causal language model of transformers: {reason_of(error)}"
        ) from error
    if info["missing_keys"]:
        raise UserError(f"{folder} lacks parameters of the model, such as {min(info['missing_keys'])}")
    return tokenizer, model


def _vocabulary(tokenizer: PreTrainedTokenizerBase) -> Vocabulary:
    end, unknown = tokenizer.eos_token_id, tokenizer.unk_token_id
    first, *others = tokenizer.tokenize("a a")
    marks = [mark for mark in WORD_MARKS if any(piece.startswith(mark) for piece in [first, *others])]
    mark = marks[0] if marks else WORD_MARKS[-1]
    return Vocabulary(
        tokenizer.convert_ids_to_tokens(range(len(tokenizer))),
        pad=end,  # some models have no other one, and others no embedding of it
        end=end,
        unknown=None if unknown == end else unknown,  # GPT-2 knows every text, and calls its end unknown
        word_mark=mark,
        marks_first_word=not marks or first.startswith(mark),
    )
