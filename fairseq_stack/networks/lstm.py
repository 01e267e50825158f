"""A language model that is an LSTM with stacks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.kinds import parse_stacks
from fairseq_stack.modules import StackLSTM, StackLSTMState
from fairseq_stack.modules._padding import padding_last
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.networks.causal import CausalLM
from fairseq_stack.networks.initialization import initialize_lstm
from fairseq_stack.networks.options import LSTMOptions
from fairseq_stack.networks.recurrences import Groups, Unread, extend
from fairseq_stack.networks.vocabulary import OneHot, Output, table
from fairseq_stack.ops._states import Rows


class ReadsSequences:
    """Mixin for language models whose first distribution comes from the initial state of an LSTM.

    The first token of a sequence, ``</s>``, is not read. A model of a stream reads the end of a sentence in its place,
    as it does in the stream.

    Attributes:
        embed_tokens: maps tokens (...) to what the LSTM reads: vectors (..., d), or integers for one-hot vectors.
        lstm: the LSTM.
        dropout_in: dropout of these vectors.
        first: of a model of a stream, the token that ends sentences there; None for other models.
    """

    embed_tokens: nn.Module
    lstm: StackLSTM
    dropout_in: nn.Module
    first: int | None

    def read(self, tokens: Tensor, padding: Tensor | None) -> Tensor:
        """The output of the LSTM before each symbol that is to be predicted, (B, n, output_size).

        Args:
            tokens: (B, n), from the beginning of sequences.
            padding: (B, n), true at padding, which is not read; or None, if no symbol follows padding.
        """
        if padding is None:
            return self._outputs(tokens)
        return padding_last(self._outputs, tokens, padding)

    def _outputs(self, tokens: Tensor) -> Tensor:
        return self.begin(tokens, return_state=False)[0]

    def begin(self, tokens: Tensor, *, return_state: bool) -> tuple[Tensor, StackLSTMState | None]:
        """The same without padding, and the state after the tokens, or None if it is not wanted.

        The outputs are y_0..y_{n-1}, where y_0 stands for the first token, or y_1..y_n if that is read.
        """
        length = tokens.size(1)
        beginning = tokens.new_zeros(min(length, 1))
        read = tokens[:, 1:] if self.first is None else tokens.index_fill(1, beginning, self.first)
        features, state = self.lstm(self.embed(read), return_state=return_state)
        if self.first is None:
            first = self.lstm.initial_output(len(tokens)).unsqueeze(1).to(features)
            features = torch.cat([first, features], 1)[:, :length]
        return features, state

    def embed(self, tokens: Tensor) -> Tensor:
        """What the LSTM reads for tokens (...)."""
        embedded: Tensor = self.embed_tokens(tokens)
        return self.dropout_in(embedded) if embedded.is_floating_point() else embedded


def build_lstm(options: Any, input_size: int) -> StackLSTM:
    """The LSTM with stacks that options describe; their names are the names in :class:`.LSTMOptions`."""
    size = options.decoder_hidden_size
    return StackLSTM(
        input_size,
        size,
        [stack.build_stack(size, options) for stack in parse_stacks(options.stack)],
        options.recurrent_dropout,
        num_layers=options.decoder_layers,
        controller=options.controller,
        dropout=options.decoder_dropout_out,
        learned_initial_state=options.learned_initial_state,
        reading_in_output=options.reading_in_output,
    )


class _Beginning(Rows):
    """The state before the first token, which is read in another way than those after it."""


class LSTMDecoder(ReadsSequences, nn.Module):
    """The parts of :class:`StackLSTMLM`, which initialises them."""

    def __init__(self, options: LSTMOptions, vocab_size: int, padding_idx: int) -> None:
        super().__init__()
        self.first, self.padding_idx = options.first, padding_idx
        input_size = options.decoder_embed_dim
        embeddings = None if input_size is None else table(vocab_size, input_size, padding_idx)
        self.embed_tokens = embeddings or OneHot(padding_idx)
        self.lstm = build_lstm(options, input_size or vocab_size)
        self.output_projection = Output(
            self.lstm.output_size,
            vocab_size,
            bias=options.output_bias,
            compact=options.compact_vocab,
            shared=embeddings if options.share_decoder_input_output_embed else None,
        )
        self.dropout_in = Dropout(options.decoder_dropout_in)
        self.dropout_out = Dropout(options.decoder_dropout_out)

    def extend(
        self, tokens: Tensor, padding: Tensor | None, state: Unread | Groups | None
    ) -> tuple[Tensor, Unread | Groups]:
        """What the output layer reads, (B, n, output_size), for further tokens (B, n), and the state after them.

        Args:
            tokens: (B, n).
            padding: (B, n), true at padding; or None.
            state: the state before the tokens; None at the beginning.

        Raises:
            ValueError: the state has another number of rows.
        """
        if state is not None:
            features, after = extend(self._step, lambda _: _Beginning(), tokens, padding, state)
            return self.dropout_out(features), after
        if padding is not None:
            tokens = tokens.masked_fill(padding, self.padding_idx)
        features = self.read(tokens, padding)
        return self.dropout_out(features), Unread(tokens.clone(), padding)

    def _step(self, tokens: Tensor, state: StackLSTMState | _Beginning) -> tuple[Tensor, Any]:
        if isinstance(state, StackLSTMState):
            return self.lstm(self.embed(tokens), state)
        if tokens.size(1) == 0:
            return self.lstm.gates.weight.new_empty(len(tokens), 0, self.lstm.output_size), state
        return self.begin(tokens, return_state=True)


class StackLSTMLM(CausalLM):
    """A causal language model. Its first distribution comes from the initial state: it does not read the first token.

    Args:
        options: the options.
        vocab_size: V, how many symbols there are.
        padding_idx: the token that is padding.

    Raises:
        UserError: an option or the list of stacks is wrong.
    """

    def __init__(self, options: LSTMOptions, vocab_size: int, padding_idx: int = 1) -> None:
        super().__init__()
        self.options, self.padding_idx = options, padding_idx
        self.decoder = LSTMDecoder(options, vocab_size, padding_idx)
        initialize_lstm(self.decoder, options.stack_init, options.stack_init_scale)
