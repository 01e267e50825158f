"""The encoder and the decoder of transformers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import Layer, parse_layer_list
from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.modules.positions import SinusoidTable, halved_sinusoids, sinusoids
from fairseq_stack.networks.attention import AttentionWithStack, MultiheadAttention, StackSelfAttention, Visible
from fairseq_stack.networks.layers import Encoded, LayerState, TransformerLayer
from fairseq_stack.networks.options import TransformerOptions
from fairseq_stack.networks.vocabulary import Output, table
from fairseq_stack.ops._states import Rows

_LAYER_LISTS = {"encoder": "stack_encoder_layers", "decoder": "stack_layers"}
_MAX_POSITIONS = {"encoder": "max_source_positions", "decoder": "max_target_positions"}


@dataclass(frozen=True, eq=False)
class DecoderState(Rows):
    """What a decoder keeps of the tokens that it has read. Immutable.

    Attributes:
        counts: how many symbols it has read, (B,).
        padding: where the tokens were padding, (B, t), or None if nowhere.
        length: t.
        layers: the states of the layers.
        encoded: what it attends to, or None.
    """

    counts: Tensor
    padding: Tensor | None
    length: int
    layers: tuple[LayerState, ...]
    encoded: Encoded | None


class Side(nn.Module):
    """What encoder and decoder share: embeddings with positions, layers, and a final layer normalisation.

    Args:
        options: the options.
        side: ``"encoder"`` or ``"decoder"``, whose options are taken.
        embed_tokens: the embeddings.
        source_size: the size of what the layers attend to besides; None if to nothing.
    """

    def __init__(
        self, options: TransformerOptions, side: str, embed_tokens: nn.Embedding, source_size: int | None = None
    ) -> None:
        super().__init__()
        size: int = getattr(options, f"{side}_embed_dim")
        self.size, self.max_positions = size, getattr(options, _MAX_POSITIONS[side])
        self.max_positions_name = _MAX_POSITIONS[side]
        assert embed_tokens.padding_idx is not None
        self.embed_tokens = embed_tokens
        self.scale = 1.0 if options.no_scale_embedding else math.sqrt(size)
        self.project_in_dim = _projection(embed_tokens.embedding_dim, size)
        self.embed_positions: nn.Embedding | None = None
        self.sinusoids: SinusoidTable | None = None
        self.first_position = embed_tokens.padding_idx + 1  # as fairseq counts: the row of padding stays unused
        if not options.no_token_positional_embeddings:
            if getattr(options, f"{side}_learned_pos"):
                self.embed_positions = table(self.max_positions + self.first_position, size, embed_tokens.padding_idx)
            else:
                is_interleaved = options.stack_positions == "interleaved"
                self.sinusoids = SinusoidTable(sinusoids if is_interleaved else halved_sinusoids, size)
                self.first_position *= not is_interleaved
        self.layernorm_embedding = nn.LayerNorm(size) if options.layernorm_embedding else None
        listed = parse_layer_list(getattr(options, _LAYER_LISTS[side]))
        self.layers = nn.ModuleList(_layer(options, side, layer, source_size) for layer in listed)
        has_norm = getattr(options, f"{side}_normalize_before") and not (
            side == "decoder" and options.no_decoder_final_norm
        )
        self.layer_norm = nn.LayerNorm(size) if has_norm else None
        self.dropout = Dropout(options.dropout)
        self.num_loops, self.injects = options.stack_loops, options.loop_injection

    def embed(self, tokens: Tensor, padding: Tensor | None, counts: Tensor | None = None, length: int = 0) -> Tensor:
        """What the first layer reads, (B, n, d), for tokens (B, n) after ``counts`` symbols (B,) in ``length`` columns.

        Raises:
            ValueError: there are more symbols than positions.
        """
        embedded = self.scale * self.embed_tokens(tokens)
        if self.project_in_dim is not None:
            embedded = self.project_in_dim(embedded)
        positions = self._positions(tokens, padding, counts, length)
        if self.embed_positions is not None:
            embedded = embedded + self.embed_positions(positions)
        elif self.sinusoids is not None:
            longest = min(length + tokens.size(1), self.max_positions)
            embedded = embedded + self.sinusoids.rows(longest + self.first_position, embedded)[positions]
        if self.layernorm_embedding is not None:
            embedded = self.layernorm_embedding(embedded)
        dropped: Tensor = self.dropout(embedded)
        return dropped

    def _positions(self, tokens: Tensor, padding: Tensor | None, counts: Tensor | None, length: int) -> Tensor:
        """The row of the table of encodings for each token, (B or 1, n)."""
        if padding is None:
            positions = torch.arange(tokens.size(1), device=tokens.device).unsqueeze(0)
        else:
            positions = (~padding).cumsum(1) - 1
        if counts is not None:
            positions = positions + counts.unsqueeze(1)
        positions = positions.clamp_min(0)
        # With no more columns than positions, no sequence can be too long, and the data need not be looked at.
        might_be_too_long = tokens.size(1) > 0 and length + tokens.size(1) > self.max_positions
        if might_be_too_long and positions.max() >= self.max_positions:
            raise ValueError(
                f"tokens: expected at most {self.max_positions} symbols in a sequence ({self.max_positions_name}), got "
                f"{int(positions.max()) + 1}"
            )
        return positions + self.first_position

    def read(
        self,
        inputs: Tensor,
        padding: Tensor | None,
        states: tuple[LayerState, ...] | None,
        visible: Visible,
        encoded: Encoded | None = None,
    ) -> tuple[Tensor, tuple[LayerState, ...]]:
        """The outputs of the last layer, (B, n, d), and the states of all layers, loop by loop."""
        after: list[LayerState] = []
        hidden = inputs
        for loop in range(self.num_loops):
            if loop > 0 and self.injects:
                hidden = hidden + inputs
            for layer in self.layers:
                before = None if states is None else states[len(after)]
                hidden, state = cast(TransformerLayer, layer).extend(hidden, padding, before, visible, encoded)
                after.append(state)
        return hidden if self.layer_norm is None else self.layer_norm(hidden), tuple(after)


class Encoder(Side):
    """The encoder of a transformer."""

    def __init__(self, options: TransformerOptions, embed_tokens: nn.Embedding) -> None:
        super().__init__(options, "encoder", embed_tokens)

    def forward(self, tokens: Tensor, padding: Tensor | None) -> Encoded:
        """Encode tokens (B, m) with padding where the mask (B, m) is true.

        Raises:
            ValueError: a sequence is longer than the encoder can read.
        """
        embedded = self.embed(tokens, padding)
        outputs, _ = self.read(embedded, padding, None, Visible.everything(padding))
        return Encoded(outputs, padding)


class Decoder(Side):
    """The decoder of a transformer; without ``source_size`` that of a language model.

    Raises:
        UserError: the output layer has the table of the embeddings, but reads something of another size.
    """

    def __init__(self, options: TransformerOptions, embed_tokens: nn.Embedding, source_size: int | None = None) -> None:
        super().__init__(options, "decoder", embed_tokens, source_size)
        output_size = options.decoder_output_dim or self.size
        self.project_out_dim = _projection(self.size, output_size)
        shares = options.share_decoder_input_output_embed or options.share_all_embeddings
        if shares and output_size != embed_tokens.embedding_dim:
            raise UserError(
                f"decoder_output_dim: expected {embed_tokens.embedding_dim}, the size of the embeddings, since "
                f"input and output share a table, got {output_size}"
            )
        self.output_projection = Output(
            output_size,
            embed_tokens.num_embeddings,
            bias=options.output_bias,
            compact=options.compact_vocab,
            shared=embed_tokens if shares else None,
        )

    def extend(
        self, tokens: Tensor, padding: Tensor | None, state: DecoderState | None, encoded: Encoded | None = None
    ) -> tuple[Tensor, DecoderState]:
        """What the output layer reads, (B, n, d_out), for further tokens (B, n), and the state after them.

        Args:
            tokens: (B, n).
            padding: (B, n), true at padding; or None.
            state: the state before the tokens; None at the beginning.
            encoded: what the decoder attends to; with a state, it has it already.

        Raises:
            ValueError: a sequence is longer than the decoder can read, or the state has another number of rows.
        """
        batch_size, num_tokens = tokens.shape
        counts, length, known = (None, 0, None) if state is None else (state.counts, state.length, state.padding)
        if counts is not None and len(counts) != batch_size:
            raise ValueError(f"inputs: expected {len(counts)} rows, as the state has, got {batch_size}")
        encoded = encoded if state is None else state.encoded
        if known is not None or (padding is not None and length):
            known = tokens.new_zeros(batch_size, length, dtype=torch.bool) if known is None else known
            new = tokens.new_zeros(batch_size, num_tokens, dtype=torch.bool) if padding is None else padding
            known = torch.cat([known, new], 1)
        else:
            known = padding
        embedded = self.embed(tokens, padding, counts, length)
        visible = Visible.before(num_tokens, length + num_tokens, known, tokens.device)
        features, layers = self.read(embedded, padding, None if state is None else state.layers, visible, encoded)
        if self.project_out_dim is not None:
            features = self.project_out_dim(features)
        new_counts = tokens.new_full((batch_size,), num_tokens) if padding is None else (~padding).sum(1)
        counts = new_counts if counts is None else counts + new_counts
        return features, DecoderState(counts, known, length + num_tokens, layers, encoded)


def _layer(options: TransformerOptions, side: str, layer: Layer, source_size: int | None) -> TransformerLayer:
    size, feedforward_size, num_heads, norm_first = (
        getattr(options, f"{side}_{name}")
        for name in ("embed_dim", "ffn_embed_dim", "attention_heads", "normalize_before")
    )
    if layer.kind.needs_tape:
        raise UserError(f"{_LAYER_LISTS[side]}: {layer} is {layer.kind.title}, which these models cannot have")
    own: MultiheadAttention | StackSelfAttention
    if layer.beside is not None:
        own = AttentionWithStack(layer.beside.build(size, options), num_heads, options.attention_dropout)
    elif layer.kind.build is None:
        own = MultiheadAttention(size, num_heads, options.attention_dropout)
    else:
        own = StackSelfAttention(layer.build(size, options))
    to_encoder = None
    if source_size is not None:
        to_encoder = MultiheadAttention(size, num_heads, options.attention_dropout, source_size)
    return TransformerLayer(
        own,
        size,
        feedforward_size,
        to_encoder,
        activation_fn=options.activation_fn,
        norm_first=norm_first,
        dropout=options.dropout,
        activation_dropout=options.activation_dropout,
    )


def _projection(inputs: int, outputs: int) -> nn.Linear | None:
    """What changes the size of vectors, without a bias; None if it does not change."""
    if inputs == outputs:
        return None
    projection = nn.Linear(inputs, outputs, bias=False)
    nn.init.xavier_uniform_(projection.weight)
    return projection
