"""``stack_tagger_transformer`` and ``stack_tagger_lstm``: an output at each position, for ``stack_transduction``."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import register_model
from torch import Tensor

from fairseq_stack.models.lstm.lstm_options import StackLSTMOptions
from fairseq_stack.models.tagger.tagger_options import (
    LSTM,
    TRANSFORMER,
    TransformerTaggerConfig,
    lstm_options,
    transformer_options,
)
from fairseq_stack.models.transducer import Output, Transducer, TransducerEncoder
from fairseq_stack.models.vocabulary import num_words
from fairseq_stack.networks.taggers import LSTMTagger, TransformerTagger
from fairseq_stack.networks.vocabulary import ABSENT


class TaggerEncoder(TransducerEncoder):
    """A tagger behind the interface of fairseq's encoders; special symbols of the dictionary are vectors of zeros."""

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None, **kwargs: Any) -> Output:
        """The logits of the words at each position, ``encoder_out`` (B, n, k).

        Args:
            src_tokens: (B, n).
            src_lengths: (B,), how many of them count; the others, on the right, change no output. All, if None.
            kwargs: what else fairseq gives.
        """
        words, count = src_tokens - self.dictionary.nspecial, num_words(self.dictionary)
        words = words.masked_fill((words < 0) | (words >= count), ABSENT)
        padding = None
        if src_lengths is not None:
            padding = torch.arange(words.size(1), device=words.device) >= src_lengths.unsqueeze(1)
        return {"encoder_out": self.network(words, padding if padding is not None and padding.any() else None)}

    def max_positions(self) -> int:
        """The longest input that is accepted; of an LSTM, fairseq's maximum."""
        return int(getattr(self.network, "max_positions", super().max_positions()))


@register_model(TRANSFORMER, dataclass=TransformerTaggerConfig)
class TransformerTaggerModel(Transducer):
    """A transformer whose layers are given by a layer list, with an output at each position."""

    @classmethod
    def build_encoder(cls, options: Namespace, dictionary: Dictionary) -> TaggerEncoder:
        count = num_words(dictionary)
        network = TransformerTagger(transformer_options(options), count, causal=options.causal)
        return TaggerEncoder(options, dictionary, network)


@register_model(LSTM, dataclass=StackLSTMOptions)
class LSTMTaggerModel(Transducer):
    """An LSTM with the stacks that ``--stack`` gives, with an output after each symbol."""

    @classmethod
    def build_encoder(cls, options: Namespace, dictionary: Dictionary) -> TaggerEncoder:
        count = num_words(dictionary)
        return TaggerEncoder(options, dictionary, LSTMTagger(lstm_options(options), count))
