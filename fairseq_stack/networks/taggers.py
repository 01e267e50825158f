"""Networks that write a word at each position of what they read."""

from __future__ import annotations

from torch import Tensor, nn

from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.networks.attention import Visible
from fairseq_stack.networks.initialization import initialize_lstm, initialize_transformer
from fairseq_stack.networks.lstm import build_lstm
from fairseq_stack.networks.options import LSTMOptions, TransformerOptions
from fairseq_stack.networks.sides import Side
from fairseq_stack.networks.vocabulary import ABSENT, Output, table


class TransformerTagger(Side):
    """A transformer with an output at each position.

    Args:
        options: the options of a decoder.
        num_words: k, how many words there are.
        causal: whether an output depends only on the words up to its position.

    Raises:
        UserError: an option or the layer list is wrong.
    """

    def __init__(self, options: TransformerOptions, num_words: int, *, causal: bool) -> None:
        super().__init__(options, "decoder", table(num_words + 1, options.decoder_embed_dim, padding_idx=0))
        self.causal = causal
        self.output_projection = Output(self.size, num_words, bias=True, compact=False)
        initialize_transformer(self, options.stack_init, options.stack_init_scale)

    def forward(self, words: Tensor, padding: Tensor | None = None) -> Tensor:
        """The logits (B, n, k) of a word at each position.

        Args:
            words: (B, n), from 0 to k - 1, or -1 for the vector of zeros.
            padding: (B, n), true at padding, on the right; or None.

        Raises:
            ValueError: there are more words than positions.
        """
        embedded = self.embed(words - ABSENT, padding)
        length = words.size(1)
        visible = Visible.before(length, length, padding, words.device) if self.causal else Visible.everything(padding)
        features, _ = self.read(embedded, padding, None, visible)
        logits: Tensor = self.output_projection(features)
        return logits


class LSTMTagger(nn.Module):
    """An LSTM with stacks, with an output after each word.

    Args:
        options: the options.
        num_words: k, how many words there are.

    Raises:
        UserError: an option or the list of stacks is wrong.
    """

    def __init__(self, options: LSTMOptions, num_words: int) -> None:
        super().__init__()
        input_size = options.decoder_embed_dim
        self.embed_tokens = None if input_size is None else table(num_words + 1, input_size, padding_idx=0)
        self.lstm = build_lstm(options, input_size or num_words)
        self.output_projection = Output(self.lstm.output_size, num_words, bias=True, compact=False)
        self.dropout_in = Dropout(options.decoder_dropout_in)
        self.dropout_out = Dropout(options.decoder_dropout_out)
        initialize_lstm(self, options.stack_init, options.stack_init_scale)

    def forward(self, words: Tensor, padding: Tensor | None = None) -> Tensor:
        """As :meth:`TransformerTagger.forward`; padding, on the right, comes too late to matter."""
        inputs = words if self.embed_tokens is None else self.dropout_in(self.embed_tokens(words - ABSENT))
        features, _ = self.lstm(inputs, return_state=False)
        logits: Tensor = self.output_projection(self.dropout_out(features))
        return logits
