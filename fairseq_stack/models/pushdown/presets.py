"""The models of Murty et al. (2023) as presets.

``_dyck``: Table 1, with a tape of 0 and 1. ``_bllip``: BLLIP-LG, Table 2. ``_gpt2``: WikiTrees, Section 4.3, with the
upper half of the layers Pushdown Layers, as in Figs. 7 and 8. ``_base`` has the loss of attachments, too, but neither
its layers nor its attachment head see depths. The first two are as the authors' code builds them: always with 8 heads;
what it calls their number multiplies the feed-forward size, and divides the size of the head's embeddings of depths.
"""

from __future__ import annotations

from fairseq_stack.models.options import Settings


def _released(layers: int, model_size: int, factor: int, depths: int, *, base: bool = False) -> Settings:
    return {
        "stack_layers": f"{layers}x{'sdpa' if base else 'pushdown'}",
        "decoder_embed_dim": model_size,
        "decoder_ffn_embed_dim": factor * model_size,
        "decoder_attention_heads": 8,
        "output_bias": True,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "pushdown_parametrization": "released",
        "pushdown_depths": depths,
        "attachment_depth_size": model_size // factor,
        **({"no_depths_in_head": True} if base else {}),
    }


PRESETS: dict[str, Settings] = {
    "pushdown_transformer_lm_dyck": _released(6, 128, 4, 2),
    "pushdown_transformer_lm_dyck_base": _released(6, 128, 4, 2, base=True),
    "pushdown_transformer_lm_bllip": _released(16, 1024, 8, 50),
    "pushdown_transformer_lm_bllip_base": _released(16, 1024, 8, 50, base=True),
    "pushdown_transformer_lm_gpt2": {
        "stack_layers": "6xsdpa,6xpushdown",
        "decoder_embed_dim": 768,
        "decoder_ffn_embed_dim": 3072,
        "decoder_attention_heads": 12,
        "decoder_normalize_before": True,
        "decoder_learned_pos": True,
        "activation_fn": "gelu",
        "no_scale_embedding": True,
        "dropout": 0.1,
        "attention_dropout": 0.1,
        "pushdown_parametrization": "figures",
        "pushdown_depths": 50,
    },
}
