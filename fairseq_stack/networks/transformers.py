"""Transformers whose layers are given by layer lists: a language model, and an encoder with a decoder."""

from __future__ import annotations

from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.networks.causal import CausalLM
from fairseq_stack.networks.initialization import initialize_transformer
from fairseq_stack.networks.layers import Encoded
from fairseq_stack.networks.options import TransformerOptions
from fairseq_stack.networks.sides import Decoder, DecoderState, Encoder
from fairseq_stack.networks.vocabulary import padding_of, table


class StackTransformerLM(CausalLM):
    """A causal language model.

    Args:
        options: the options.
        vocab_size: V, how many symbols there are.
        padding_idx: the token that is padding.

    Raises:
        UserError: an option or the layer list is wrong.
    """

    def __init__(self, options: TransformerOptions, vocab_size: int, padding_idx: int = 1) -> None:
        super().__init__()
        self.options, self.padding_idx = options, padding_idx
        input_size = options.decoder_input_dim or options.decoder_embed_dim
        self.decoder = Decoder(options, table(vocab_size, input_size, padding_idx))
        initialize_transformer(self, options.stack_init, options.stack_init_scale)


class StackTransformer(nn.Module):
    """An encoder and a decoder that attends to it.

    Args:
        options: the options.
        source_vocab_size: how many symbols the encoder can read.
        vocab_size: V, how many symbols the decoder can read and write (default: as many).
        padding_idx: the token that is padding.

    Raises:
        UserError: an option or a layer list is wrong, or tables are shared that have different sizes.
    """

    def __init__(
        self, options: TransformerOptions, source_vocab_size: int, vocab_size: int | None = None, padding_idx: int = 1
    ) -> None:
        super().__init__()
        self.options, self.padding_idx = options, padding_idx
        vocab_size = vocab_size or source_vocab_size
        sizes = options.encoder_embed_dim, options.decoder_input_dim or options.decoder_embed_dim
        source_table = table(source_vocab_size, sizes[0], padding_idx)
        if options.share_all_embeddings:
            if (source_vocab_size, sizes[0]) != (vocab_size, sizes[1]):
                raise UserError(
                    "share_all_embeddings: expected tables of one size, got "
                    f"{source_vocab_size} x {sizes[0]} for the encoder and {vocab_size} x {sizes[1]} for the decoder"
                )
            target_table = source_table
        else:
            target_table = table(vocab_size, sizes[1], padding_idx)
        self.encoder = Encoder(options, source_table)
        self.decoder = Decoder(options, target_table, None if options.no_cross_attention else sizes[0])
        initialize_transformer(self, options.stack_init, options.stack_init_scale)

    def forward(
        self,
        source: Tensor,
        target: Tensor,
        source_padding_mask: Tensor | None = None,
        target_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """The logits (B, n, V) of what follows each token of the target.

        Args:
            source: (B, m).
            target: (B, n).
            source_padding_mask: (B, m), true at padding, wherever it is (default: where tokens are ``padding_idx``).
            target_padding_mask: (B, n), likewise.

        Raises:
            ValueError: a mask has another shape, or a sequence is longer than the model can read.
        """
        return self.extend(target, None, self.encode(source, source_padding_mask), target_padding_mask)[0]

    def encode(self, source: Tensor, padding_mask: Tensor | None = None) -> Encoded:
        """What the decoder attends to, for a source (B, m); see :meth:`forward`."""
        encoded: Encoded = self.encoder(
            source, padding_of(source, padding_mask, self.padding_idx, "source_padding_mask")
        )
        return encoded

    def extend(
        self,
        target: Tensor,
        state: DecoderState | None = None,
        encoded: Encoded | None = None,
        padding_mask: Tensor | None = None,
    ) -> tuple[Tensor, DecoderState]:
        """The logits as in :meth:`forward` for the beginning of a target or further tokens, and the state after them.

        Args:
            target: (B, n).
            state: the state before the tokens; None at the beginning.
            encoded: what :meth:`encode` returned; only read at the beginning, as a state has it.
            padding_mask: of these tokens, (B, n).

        Raises:
            ValueError: as :meth:`forward`; the state has another number of rows; or there is neither a state nor a
                source.
        """
        if state is None and encoded is None:
            raise ValueError("encoded: expected what encode() returns at the beginning of a target, got None")
        padding = padding_of(target, padding_mask, self.padding_idx)
        features, state = self.decoder.extend(target, padding, state, encoded)
        return self.decoder.output_projection(features), state
