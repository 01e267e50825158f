"""The architectures of DuSell & Chiang (2024) as presets: Table 2 (``_ptb``), Table 3 (sizes) and Table 5 (``_cfl``).

``tf`` has scaled dot-product attention in all five layers; ``sup`` and ``nd`` have superposition and
nondeterministic stack attention in the middle one.
"""

from __future__ import annotations

from fairseq_stack.models.options import Settings

_AS_IN_PAPER: Settings = {
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "activation_dropout": 0.1,
    "stack_positions": "interleaved",
    "stack_init": "paper",
}


def _five_layers(middle: str) -> str:
    return "5xsdpa" if middle == "sdpa" else f"2xsdpa,{middle},2xsdpa"


def _translation(model_size: int, middle: str) -> Settings:
    return {
        **_AS_IN_PAPER,
        "stack_encoder_layers": _five_layers(middle),
        "stack_decoder_layers": _five_layers(middle),
        "encoder_embed_dim": model_size,
        "decoder_embed_dim": model_size,
        "encoder_ffn_embed_dim": 4 * model_size,
        "decoder_ffn_embed_dim": 4 * model_size,
        "encoder_attention_heads": 8,
        "decoder_attention_heads": 8,
        "encoder_normalize_before": True,
        "decoder_normalize_before": True,
        "share_all_embeddings": True,
        "stack_init_scale": 0.01,
    }


def _penn_treebank(middle: str) -> Settings:
    return {
        **_AS_IN_PAPER,
        "stack_layers": _five_layers(middle),
        "decoder_embed_dim": 256,
        "decoder_ffn_embed_dim": 1024,
        "decoder_attention_heads": 8,
        "share_decoder_input_output_embed": True,
        "stack_init_scale": 0.01,
    }


def _context_free(model_size: int, middle: str) -> Settings:
    return {
        **_AS_IN_PAPER,
        "stack_layers": _five_layers(middle),
        "decoder_embed_dim": model_size,
        "decoder_ffn_embed_dim": 2 * model_size,
        "decoder_attention_heads": 4,
        "output_bias": True,
        "stack_init_scale": 0.1,
    }


TRANSLATION_PRESETS: dict[str, Settings] = {
    f"stack_transformer_{kind}_{size}": _translation(model_size, middle)
    for size, model_size in (("small", 160), ("medium", 240), ("large", 360))
    for kind, middle in (("tf", "sdpa"), ("sup", f"sup-{model_size}"), ("nd", "nd-3-3-5"))
}

LANGUAGE_MODEL_PRESETS: dict[str, Settings] = {
    "stack_transformer_lm_tf_ptb": _penn_treebank("sdpa"),
    "stack_transformer_lm_sup_ptb": _penn_treebank("sup-511"),
    "stack_transformer_lm_nd_ptb": _penn_treebank("nd-3-3-10"),
    "stack_transformer_lm_tf_cfl": _context_free(32, "sdpa"),
    "stack_transformer_lm_sup_cfl": _context_free(32, "sup-32"),
    "stack_transformer_lm_nd_cfl": _context_free(28, "nd-2-3-5"),
}
