"""``stack_lstm_lm``: language modelling with an LSTM that controls stacks."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel, register_model
from fairseq.tasks import FairseqTask
from torch import Tensor, nn

from fairseq_stack.models.lstm.lstm_decoder import StackLSTMDecoder
from fairseq_stack.models.lstm.lstm_options import MODEL, StackLSTMLanguageModelConfig, settle
from fairseq_stack.models.presets import register_presets
from fairseq_stack.models.pretrained import Pretrained
from fairseq_stack.models.shared_options import (
    initial_scale,
    plain_namespace,
    require_language_modeling,
    require_one_dictionary,
)
from fairseq_stack.models.vocabulary import (
    CompactEmbedding,
    CompactOutput,
    CompactRows,
    CompactVocabulary,
    End,
    check_symbols,
    new_table,
)
from fairseq_stack.modules import StackLSTMState
from fairseq_stack.networks.initialization import initialize_lstm
from fairseq_stack.networks.lstm import build_lstm
from fairseq_stack.networks.options import LSTMOptions, output_size
from fairseq_stack.networks.vocabulary import OneHot

_NO_LIMIT = 1_000_000
"""The maximum length where there is no limit, as in fairseq."""


@register_model(MODEL, dataclass=StackLSTMLanguageModelConfig)
class StackLSTMLanguageModel(Pretrained, FairseqLanguageModel):
    """A language model that is an LSTM, or a simple recurrent network, with the stacks that ``--stack`` gives."""

    @classmethod
    def build_model(cls, args: Any, task: FairseqTask) -> StackLSTMLanguageModel:
        """Build the model that fairseq's and our options describe.

        Raises:
            UserError: for wrong stacks, options that cannot be combined, or a task of translation.
        """
        require_language_modeling(MODEL, task)
        require_one_dictionary(MODEL, task)
        options = plain_namespace(args)
        first = getattr(task, "end_of_sentence", None)  # of a stream, which continues from sentence to sentence
        if first is not None and options.max_target_positions is None:
            options.max_target_positions = _NO_LIMIT
        settle(options)
        dictionary = task.target_dictionary
        end = End.EOS if first == dictionary.eos() else End.UNREAD
        vocabulary = _vocabulary(options, dictionary, end)
        input_size = options.decoder_embed_dim or (vocabulary.num_input_rows() if vocabulary else len(dictionary))
        embed_tokens = _input(options, dictionary, vocabulary, end)
        lstm = build_lstm(options, input_size)
        output = _output(options, dictionary, vocabulary, embed_tokens)
        decoder = StackLSTMDecoder(options, dictionary, embed_tokens, lstm, output, first)
        initialize_lstm(decoder, options.stack_init, initial_scale(options, LSTMOptions.stack_init_scale))
        return cls(decoder)

    def forward(self, src_tokens: Tensor, **kwargs: Any) -> tuple[Tensor, dict[str, Any]]:
        """As in fairseq, or from a ``state`` (:meth:`StackLSTMDecoder.extract_features`).

        Raises:
            UserError: a symbol is one that the compact vocabulary treats as impossible.
        """
        check_symbols(self.decoder, src_tokens, first_is_read="state" in kwargs)
        return super().forward(src_tokens, **kwargs)

    def initial_state(self, batch_size: int) -> StackLSTMState:
        """The state before a stream of text."""
        state: StackLSTMState = self.decoder.lstm.initial_state(batch_size)
        return state


def _vocabulary(args: Namespace, dictionary: Dictionary, end: End) -> CompactVocabulary | None:
    if not args.compact_vocab:
        return None
    shared = args.share_decoder_input_output_embed  # then </s> has a row anyway, for the output
    return CompactVocabulary(dictionary, args.compact_vocab_unk, shared, read_ends=end is not End.UNREAD and not shared)


def _input(args: Namespace, dictionary: Dictionary, vocabulary: CompactVocabulary | None, end: End) -> nn.Module:
    """What maps tokens to the input of the LSTM."""
    size, pad = args.decoder_embed_dim, dictionary.pad()
    if vocabulary is None:
        return OneHot(pad) if size is None else nn.Embedding(len(dictionary), size, pad)
    if size is None:
        return CompactRows(vocabulary, end)
    return CompactEmbedding(vocabulary, new_table(vocabulary.num_input_rows(), size), end)


def _output(
    args: Namespace, dictionary: Dictionary, vocabulary: CompactVocabulary | None, embed_tokens: nn.Module
) -> nn.Module:
    """What maps outputs of the LSTM to logits."""
    size = output_size(args)
    table = embed_tokens.get_parameter("weight") if args.share_decoder_input_output_embed else None
    if vocabulary is not None:
        if table is None:
            table = new_table(vocabulary.num_output_rows(), size)
        return CompactOutput(vocabulary, table, args.output_bias)
    output = nn.Linear(size, len(dictionary), bias=args.output_bias)
    if table is not None:
        output.weight = table
    return output


register_presets(MODEL)
