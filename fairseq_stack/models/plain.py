"""Models without fairseq: the networks that compute what trained models do."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from fairseq_stack.errors import UserError
from fairseq_stack.models.lstm.stack_lstm_lm import StackLSTMLanguageModel
from fairseq_stack.models.shared_options import flag, shared_with
from fairseq_stack.models.transformer.encoder_decoder import layers_of
from fairseq_stack.models.transformer.stack_transformer import StackTransformer
from fairseq_stack.models.transformer.stack_transformer_lm import StackTransformerLanguageModel
from fairseq_stack.models.transformer.transformer_options import NOT_IN_PLAIN_NETWORKS
from fairseq_stack.models.vocabulary import CompactEmbedding, CompactOutput, CompactRows, spread
from fairseq_stack.networks import LSTMOptions, StackLSTMLM, StackTransformerLM, TransformerOptions
from fairseq_stack.networks import StackTransformer as PlainTransformer

PlainModel = StackLSTMLM | StackTransformerLM | PlainTransformer


def plain_model(model: nn.Module) -> PlainModel:
    """The network of :mod:`fairseq_stack.networks` that computes what a trained model does; its parameters are copies.

    A compact vocabulary is spread over the dictionary: other symbols have embeddings 0 and logits -inf.

    Args:
        model: a model, or what ``from_pretrained`` returns.

    Raises:
        UserError: it is an ensemble, a model of another family, or has an option that plain networks do not have.
    """
    models: Any = getattr(model, "models", [model])
    if len(models) != 1:
        raise UserError(f"expected one model, got an ensemble of {len(models)}")
    (trained,) = models
    plain = _network(trained)
    weight = trained.decoder.output_projection.weight
    plain.to(weight.device, weight.dtype).train(trained.training).load_state_dict(_parameters(trained))
    return plain


def _network(model: Any) -> PlainModel:
    if isinstance(model, StackLSTMLanguageModel):
        return StackLSTMLM(_lstm_options(model.decoder), len(model.decoder.dictionary), model.decoder.padding_idx)
    if not isinstance(model, StackTransformer | StackTransformerLanguageModel):
        expected = "a stack_transformer, stack_transformer_lm or stack_lstm_lm"
        raise UserError(f"expected {expected}, got {type(model).__name__}")
    decoder, encoder = model.decoder, getattr(model, "encoder", None)
    for name in NOT_IN_PLAIN_NETWORKS:
        if getattr(decoder.cfg, name, None):
            raise UserError(f"{flag(name)}: expected a model without it, since plain networks do not have it")
    options, vocab_size = _transformer_options(decoder, encoder), len(decoder.dictionary)
    if encoder is None:
        return StackTransformerLM(options, vocab_size, decoder.padding_idx)
    return PlainTransformer(options, len(encoder.dictionary), vocab_size, decoder.padding_idx)


def _lstm_options(decoder: Any) -> LSTMOptions:
    cfg, compact = decoder.cfg, isinstance(decoder.output_projection, CompactOutput)
    same = shared_with(LSTMOptions, cfg)
    decided = {
        "share_decoder_input_output_embed": cfg.share_decoder_input_output_embed and not compact,
        "compact_vocab": compact,
        "first": decoder.first,
        "stack_init": "uniform" if same["stack_init"] == "fairseq" else same["stack_init"],
        "stack_init_scale": cfg.stack_init_scale or LSTMOptions.stack_init_scale,
    }
    return LSTMOptions(**same | decided)


def _transformer_options(decoder: Any, encoder: Any) -> TransformerOptions:
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
    """The parameters of the network, under fairseq's names."""
    parameters = {name: value for name, value in model.state_dict().items() if not name.endswith("version")}
    for side in ("encoder", "decoder"):
        for part in ("embed_tokens", "output_projection"):
            module = getattr(getattr(model, side, None), part, None)
            if isinstance(module, CompactEmbedding | CompactOutput):
                for name, value in module.named_parameters():
                    parameters[f"{side}.{part}.{name}"] = spread(value, module.rows)
            elif isinstance(module, CompactRows):  # of one-hot vectors, which an LSTM reads
                lstm = model.decoder.lstm
                of_words, others = lstm.gates.weight.tensor_split([lstm.input_size], 1)
                parameters["decoder.lstm.gates.weight"] = torch.cat([spread(of_words.t(), module.rows).t(), others], 1)
            if isinstance(module, CompactOutput):
                parameters[f"{side}.{part}.possible"] = module.can_occur()
    return parameters
