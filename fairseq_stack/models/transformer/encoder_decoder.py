"""fairseq's transformer encoder and decoder with layers that are given by layer lists."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor, nn

from fairseq_stack.compat.models import is_from_checkpoint
from fairseq_stack.errors import UserError
from fairseq_stack.kinds import SDPA, Layer, parse_layer_list
from fairseq_stack.models.incremental import IncrementalState, ReadsAhead
from fairseq_stack.models.transformer.layers import StackDecoderLayer, StackEncoderLayer, wrapped
from fairseq_stack.models.transformer.loops import Visit, loop_layers, of_loop
from fairseq_stack.models.vocabulary import CompactEmbedding, CompactOutput, new_table, register_fingerprint
from fairseq_stack.modules import InterleavedSinusoidalPositions


class StackTransformerEncoder(TransformerEncoderBase):
    """fairseq's transformer encoder with the self-attention that ``cfg.stack_encoder_layers`` lists."""

    def __init__(self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module) -> None:
        self._layers_to_build = iter(layers_of(cfg.stack_encoder_layers, cfg.encoder))
        super().__init__(cfg, dictionary, embed_tokens)
        loop_layers(self, cfg)
        _set_positions(self, cfg, cfg.encoder.embed_dim, cfg.max_source_positions)
        register_fingerprint(self, dictionary)

    def build_encoder_layer(self, cfg: Any) -> nn.Module:
        return wrapped(StackEncoderLayer(cfg, next(self._layers_to_build)), cfg)


class StackTransformerDecoder(ReadsAhead, TransformerDecoderBase):
    """fairseq's transformer decoder with the self-attention that ``cfg.stack_decoder_layers`` lists.

    It is the decoder of translation models and, with ``no_encoder_attn``, of language models.
    """

    def __init__(
        self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module, no_encoder_attn: bool = False
    ) -> None:
        self._layers_to_build = iter(layers_of(cfg.stack_decoder_layers, cfg.decoder))
        if isinstance(embed_tokens, CompactEmbedding):
            embed_tokens = embed_tokens.at_beginning()
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn)
        self.num_loops: int = cfg.stack_loops
        loop_layers(self, cfg)
        _set_positions(self, cfg, cfg.decoder.embed_dim, cfg.max_target_positions)
        register_fingerprint(self, dictionary)

    def build_decoder_layer(self, cfg: Any, no_encoder_attn: bool = False) -> nn.Module:
        return wrapped(StackDecoderLayer(cfg, next(self._layers_to_build), no_encoder_attn), cfg)

    def build_output_projection(self, cfg: Any, dictionary: Dictionary, embed_tokens: nn.Module) -> None:
        if isinstance(embed_tokens, CompactEmbedding):
            vocabulary = embed_tokens.vocabulary
            shared = self.share_input_output_embed
            weight = embed_tokens.weight if shared else new_table(vocabulary.num_output_rows(), self.output_embed_dim)
            self.output_projection = CompactOutput(vocabulary, weight, cfg.output_bias)
            return
        super().build_output_projection(cfg, dictionary, embed_tokens)
        if cfg.output_bias:
            self.output_projection.bias = nn.Parameter(torch.zeros(len(dictionary)))

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: dict[str, list[Tensor]] | None = None,
        incremental_state: IncrementalState | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """As fairseq's.

        Raises:
            ValueError: if, decoding incrementally, ``prev_output_tokens`` is not one token longer than before: the
                base class would silently skip the tokens between.
        """
        if incremental_state is not None:
            ahead = self.take_step(incremental_state, prev_output_tokens)
            if ahead is not None:
                return ahead, {"attn": [None]}
        if self.num_loops > 1 and kwargs.get("alignment_layer") is None:
            kwargs["alignment_layer"] = self.num_loops * self.num_layers - 1
        return super().extract_features(prev_output_tokens, encoder_out, incremental_state, *args, **kwargs)

    def read_all(self, tokens: Tensor, incremental_state: IncrementalState) -> Tensor:
        features, extra = self.extract_features(tokens)
        # fairseq's decoder gives its layers a state or a mask of the future, so only their attention is given both.
        for visited, hidden in zip(self.layers, extra["inner_states"], strict=False):
            layer, inputs, state = visited, hidden, incremental_state
            if isinstance(visited, Visit):
                layer, inputs = visited.layer, visited.inputs(hidden)
                state = of_loop(incremental_state, visited.loop)
            if layer.normalize_before:
                inputs = layer.self_attn_layer_norm(inputs)
            layer.self_attn(inputs, key=inputs, value=inputs, incremental_state=state)
        return features

    def reorder_incremental_state_scripting(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        super().reorder_incremental_state_scripting(incremental_state, new_order)
        for loop in range(1, self.num_loops):
            super().reorder_incremental_state_scripting(of_loop(incremental_state, loop), new_order)


def layers_of(layers: str | None, cfg: Any) -> tuple[Layer, ...]:
    """The layers that a layer list and fairseq's options of a side give: those to keep, or without a list SDPA."""
    if layers is None:
        return (Layer(SDPA),) * cfg.layers
    listed = parse_layer_list(layers)
    if cfg.layers_to_keep:
        if not is_from_checkpoint():
            raise UserError("layers to keep: expected a trained model (--model-overrides); shorten the layer list")
        kept = sorted(int(index) for index in str(cfg.layers_to_keep).split(","))
        if kept[-1] >= len(listed):
            raise UserError(f"layers to keep: expected numbers below {len(listed)} for {layers!r}, got {kept[-1]}")
        listed = tuple(listed[index] for index in kept)
    return listed


def _set_positions(part: Any, cfg: Any, embed_dim: int, max_positions: int) -> None:
    if cfg.stack_positions == "interleaved" and not cfg.no_token_positional_embeddings:
        part.embed_positions = InterleavedSinusoidalPositions(embed_dim, part.padding_idx, max_positions)
