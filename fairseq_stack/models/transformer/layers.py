"""Transformer layers whose self-attention is given by a layer list."""

from __future__ import annotations

from typing import Any

from fairseq.distributed import fsdp_wrap
from fairseq.modules import transformer_layer
from fairseq.modules.checkpoint_activations import checkpoint_wrapper
from torch import Tensor, nn

from fairseq_stack.kinds import Layer
from fairseq_stack.models.transformer.self_attention import AttentionWithStack, StackSelfAttention


class StackEncoderLayer(transformer_layer.TransformerEncoderLayerBase):
    """fairseq's encoder layer with the self-attention that an entry of a layer list names."""

    def __init__(self, cfg: Any, attention: Layer) -> None:
        self._attention = attention
        super().__init__(cfg)

    def build_self_attention(self, embed_dim: int, cfg: Any) -> nn.Module:
        stack = _with_stack(self._attention, embed_dim, cfg.encoder.attention_heads, cfg)
        return super().build_self_attention(embed_dim, cfg) if stack is None else stack


class StackDecoderLayer(transformer_layer.TransformerDecoderLayerBase):
    """fairseq's decoder layer with the self-attention that an entry of a layer list names."""

    def __init__(self, cfg: Any, attention: Layer, no_encoder_attn: bool = False) -> None:
        self._attention = attention
        super().__init__(cfg, no_encoder_attn)

    def build_self_attention(self, embed_dim: int, cfg: Any, **options: Any) -> nn.Module:
        stack = _with_stack(self._attention, embed_dim, cfg.decoder.attention_heads, cfg)
        return super().build_self_attention(embed_dim, cfg, **options) if stack is None else stack

    def forward(self, x: Tensor, *args: Any, self_attn_padding_mask: Tensor | None = None, **kwargs: Any) -> Any:
        """As fairseq's."""
        is_causal = kwargs.get("self_attn_mask") is not None and not self.cross_self_attention
        if is_causal and _is_in_the_future(self_attn_padding_mask):
            self_attn_padding_mask = None
        return super().forward(x, *args, self_attn_padding_mask=self_attn_padding_mask, **kwargs)


def _is_in_the_future(padding_mask: Tensor | None) -> bool:
    """Whether the causal mask already hides all padding (B, n) from the tokens: each row begins with a token.

    On a CPU, masking takes a tenth of an update or more; on a GPU, the answer would have to be waited for.
    """
    return padding_mask is not None and padding_mask.device.type == "cpu" and not padding_mask[:, 0].any()


def _with_stack(attention: Layer, embed_dim: int, num_heads: int, cfg: Any) -> nn.Module | None:
    """Stack attention, or attention with a stack beside it; None for fairseq's own self-attention."""
    if attention.beside is not None:
        return AttentionWithStack(attention.beside.build(embed_dim, cfg), num_heads, cfg.attention_dropout)
    return None if attention.kind.build is None else StackSelfAttention(attention.build(embed_dim, cfg))


def wrapped(layer: nn.Module, cfg: Any) -> nn.Module:
    """The layer, wrapped as fairseq wraps its own."""
    if cfg.checkpoint_activations:
        layer = checkpoint_wrapper(layer, offload_to_cpu=cfg.offload_activations)
    return fsdp_wrap(layer, min_num_params=0 if cfg.checkpoint_activations else cfg.min_params_to_wrap)
