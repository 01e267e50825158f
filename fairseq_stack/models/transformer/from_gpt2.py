"""GPT-2 as the beginning of a language model of stack transformers."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from fairseq.modules import MultiheadAttention

from fairseq_stack.errors import UserError
from fairseq_stack.models.gpt2 import GPT2, Part
from fairseq_stack.models.shared_options import flag
from fairseq_stack.models.transformer.encoder_decoder import StackTransformerDecoder
from fairseq_stack.models.transformer.transformer_options import NOT_IN_PLAIN_NETWORKS

_MODULES: dict[str, Part] = {
    "self_attn_layer_norm": ("ln_1", None),
    "final_layer_norm": ("ln_2", None),
    "fc1": ("mlp.c_fc", None),
    "fc2": ("mlp.c_proj", None),
}
_ATTENTION: dict[str, Part] = {
    "self_attn.q_proj": ("attn.c_attn", 0),
    "self_attn.k_proj": ("attn.c_attn", 1),
    "self_attn.v_proj": ("attn.c_attn", 2),
    "self_attn.out_proj": ("attn.c_proj", None),
}


def settle_from_gpt2(options: Namespace, gpt2: GPT2) -> dict[str, Any]:
    """Set the options that GPT-2 decides, and return them; without a layer list all layers are SDPA.

    Raises:
        UserError: see :meth:`GPT2.settle`; or an option is set that leaves no room for GPT-2.
    """
    for name in (*NOT_IN_PLAIN_NETWORKS, "decoder_layers_to_keep", "no_padding_row"):
        if getattr(options, name, None):
            raise UserError(f"{flag(name)} and --init-from-gpt2 cannot be combined")
    options.stack_layers = options.stack_layers or f"{gpt2.num_layers}xsdpa"
    return gpt2.settle(
        options,
        stack_layers=options.stack_layers,
        decoder_layers=gpt2.num_layers,
        decoder_input_dim=gpt2.size,
        decoder_output_dim=gpt2.size,
        share_decoder_input_output_embed=True,
        no_token_positional_embeddings=False,
        stack_positions="fairseq",
        layernorm_embedding=False,
        no_decoder_final_norm=False,
    )


def begin_as_gpt2(decoder: StackTransformerDecoder, gpt2: GPT2) -> None:
    """Copy GPT-2's weights. Stacks, and layers without attention, stay as they are.

    Raises:
        UserError: see :meth:`GPT2.copy_embeddings`.
    """
    positions = decoder.embed_positions
    gpt2.copy_embeddings(decoder.embed_tokens, decoder.dictionary.symbols)
    positions.weight.data[positions.padding_idx + 1 :] = gpt2.weights["wpe.weight"]
    layers = decoder.layers.children()  # iterating over them as a list drops some, or repeats them
    has_attention = [isinstance(layer.self_attn, MultiheadAttention) for layer in layers]
    gpt2.copy_layers(decoder, "layer_norm", [_MODULES | (_ATTENTION if has else {}) for has in has_attention])
