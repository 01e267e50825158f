"""GPT-2 as the beginning of a syntactic language model."""

from __future__ import annotations

from typing import cast

from fairseq_stack.models.gpt2 import GPT2, Part
from fairseq_stack.models.pushdown.pushdown_decoder import PushdownDecoder
from fairseq_stack.models.vocabulary import CompactEmbedding
from fairseq_stack.modules import PushdownAttention

_MODULES: dict[str, Part] = {
    "attention_norm": ("ln_1", None),
    "feedforward_norm": ("ln_2", None),
    "feedforward.0": ("mlp.c_fc", None),
    "feedforward.2": ("mlp.c_proj", None),
}
_ATTENTION: dict[str, Part] = {"attention.projection": ("attn.c_attn", None), "attention.output": ("attn.c_proj", None)}


def begin_as_gpt2(decoder: PushdownDecoder, gpt2: GPT2) -> None:
    """Copy GPT-2's weights. The attachment head, tables of depths and layers without attention stay as they are.

    Raises:
        UserError: see :meth:`GPT2.copy_embeddings`.
    """
    network = decoder.network
    gpt2.copy_embeddings(cast(CompactEmbedding, decoder.embed_tokens), decoder.dictionary.symbols)
    network.get_parameter("positions.weight").data.copy_(gpt2.weights["wpe.weight"])
    has_attention = [isinstance(layer.attention, PushdownAttention) for layer in network.layers]
    gpt2.copy_layers(network, "norm", [_MODULES | (_ATTENTION if has else {}) for has in has_attention])
