"""Stack transformers without fairseq: the networks that compute what a model does."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.models.shared_options import flag, shared_with
from fairseq_stack.models.transformer.encoder_decoder import layers_of
from fairseq_stack.models.vocabulary import CompactEmbedding, CompactOutput, spread
from fairseq_stack.networks import StackTransformer, StackTransformerLM, TransformerOptions

REFUSED = (
    "adaptive_input", "adaptive_softmax_cutoff", "base_layers", "cross_self_attention", "decoder_xformers_att_config",
    "encoder_xformers_att_config", "quant_noise_pq", "quant_noise_scalar", "scale_attn", "scale_fc", "scale_heads",
    "scale_resids", "tie_adaptive_weights",
)  # fmt: skip
"""The options of fairseq that change what is computed and that plain networks do not have."""


def plain_transformer(model: Any) -> StackTransformer | StackTransformerLM:
    """The network that computes what a ``stack_transformer`` or ``stack_transformer_lm`` does, with copied parameters.

    A compact vocabulary is spread over the dictionary: other symbols have embeddings 0 and logits -inf.

    Raises:
        UserError: the model has an option that plain networks do not have.
    """
    decoder, encoder = model.decoder, getattr(model, "encoder", None)
    for name in REFUSED:
        if getattr(decoder.cfg, name, None):
            raise UserError(f"{flag(name)}: expected a model without it, since plain networks do not have it")
    options, vocab_size, padding_idx = _options(decoder, encoder), len(decoder.dictionary), decoder.padding_idx
    plain: StackTransformer | StackTransformerLM
    if encoder is None:
        plain = StackTransformerLM(options, vocab_size, padding_idx)
    else:
        plain = StackTransformer(options, len(encoder.dictionary), vocab_size, padding_idx)
    weight = decoder.output_projection.weight
    plain.to(weight.device, weight.dtype).train(model.training).load_state_dict(_parameters(model))
    return plain


def _options(decoder: Any, encoder: Any) -> TransformerOptions:
    cfg = decoder.cfg
    sides = ("decoder",) if encoder is None else ("decoder", "encoder")
    same = shared_with(TransformerOptions, cfg)
    if encoder is None:  # the options of the other side mean nothing to a language model
        same = {name: value for name, value in same.items() if not name.startswith("encoder")}
    lists = {"decoder": "stack_layers", "encoder": "stack_encoder_layers"}
    layers = {
        lists[side]: ",".join(map(str, layers_of(getattr(cfg, f"stack_{side}_layers"), getattr(cfg, side))))
        for side in sides
    }
    compact = isinstance(decoder.output_projection, CompactOutput)
    shares = not compact and decoder.output_projection.weight is decoder.embed_tokens.weight
    decided = {
        **layers,
        "decoder_input_dim": decoder.embed_tokens.embedding_dim,
        "decoder_output_dim": decoder.output_embed_dim,
        "no_decoder_final_norm": decoder.layer_norm is None,
        "share_decoder_input_output_embed": shares,
        "share_all_embeddings": shares and encoder is not None and encoder.embed_tokens is decoder.embed_tokens,
        "compact_vocab": compact,
        "activation_dropout": cfg.activation_dropout or cfg.relu_dropout or 0.0,
        "stack_init_scale": cfg.stack_init_scale or TransformerOptions.stack_init_scale,
    }
    return TransformerOptions(**same | decided)


def _parameters(model: Any) -> dict[str, Tensor]:
    """The parameters of the network, by their names, which are those of fairseq."""
    left_out = ("version", "dictionary_version")
    parameters = {name: value for name, value in model.state_dict().items() if not name.endswith(left_out)}
    for side in ("encoder", "decoder"):
        for part in ("embed_tokens", "output_projection"):
            module = getattr(getattr(model, side, None), part, None)
            if not isinstance(module, CompactEmbedding | CompactOutput):
                continue
            for name, value in module.named_parameters():
                parameters[f"{side}.{part}.{name}"] = spread(value, module.rows)
            if isinstance(module, CompactOutput):
                parameters[f"{side}.{part}.possible"] = module.can_occur()
    return parameters
