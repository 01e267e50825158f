"""Transformer layers whose self-attention is given by a layer list."""

from __future__ import annotations

from typing import Any

from fairseq.distributed import fsdp_wrap
from fairseq.modules import transformer_layer
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import nn

from fairseq_stack.kinds import Layer
from fairseq_stack.models.transformer.self_attention import AttentionWithStack, StackSelfAttention


class StackEncoderLayer(transformer_layer.TransformerEncoderLayerBase):
    """fairseq's encoder layer with stack attention for self-attention, or beside it."""

    def __init__(self, cfg: Any, attention: Layer, return_fc: bool = False) -> None:
        self._attention = attention
        super().__init__(cfg, return_fc=return_fc)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> nn.Module:
        return _build_self_attention(self._attention, embed_dim, cfg.encoder.attention_heads, cfg)


class StackDecoderLayer(transformer_layer.TransformerDecoderLayerBase):
    """fairseq's decoder layer with stack attention for self-attention, or beside it."""

    def __init__(self, cfg: Any, attention: Layer, no_encoder_attn: bool = False) -> None:
        self._attention = attention
        super().__init__(cfg, no_encoder_attn)

    def build_self_attention(
        self, embed_dim: int, cfg: Any, add_bias_kv: bool = False, add_zero_attn: bool = False
    ) -> nn.Module:
        return _build_self_attention(self._attention, embed_dim, cfg.decoder.attention_heads, cfg)


def build_encoder_layer(cfg: Any, attention: Layer, return_fc: bool) -> nn.Module:
    """An encoder layer with this attention, wrapped as fairseq wraps its own."""
    if attention.kind.build is None and attention.beside is None:
        return _wrap(transformer_layer.TransformerEncoderLayerBase(cfg, return_fc=return_fc), cfg)
    return _wrap(StackEncoderLayer(cfg, attention, return_fc), cfg)


def build_decoder_layer(cfg: Any, attention: Layer, no_encoder_attn: bool) -> nn.Module:
    """A decoder layer with this attention, wrapped as fairseq wraps its own."""
    if attention.kind.build is None and attention.beside is None:
        return _wrap(transformer_layer.TransformerDecoderLayerBase(cfg, no_encoder_attn), cfg)
    return _wrap(StackDecoderLayer(cfg, attention, no_encoder_attn), cfg)


def _build_self_attention(attention: Layer, embed_dim: int, num_heads: int, cfg: Any) -> nn.Module:
    if attention.beside is None:
        return StackSelfAttention(attention.build(embed_dim, cfg))
    return AttentionWithStack(attention.beside.build(embed_dim, cfg), num_heads, cfg.attention_dropout)


def _wrap(layer: nn.Module, cfg: Any) -> nn.Module:
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    return fsdp_wrap(layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap)
