"""Stack LSTMs without fairseq: the networks that compute what a model does."""

from __future__ import annotations

from typing import Any

import torch

from fairseq_stack.models.shared_options import shared_with
from fairseq_stack.models.vocabulary import CompactEmbedding, CompactOutput, CompactRows, spread
from fairseq_stack.networks import LSTMOptions, StackLSTMLM


def plain_lstm(model: Any) -> StackLSTMLM:
    """The network that computes what a ``stack_lstm_lm`` does; its parameters are copies.

    A compact vocabulary is spread over the dictionary: other symbols have embeddings 0 and logits -inf.
    """
    decoder = model.decoder
    plain = StackLSTMLM(_options(decoder), len(decoder.dictionary), decoder.padding_idx)
    parameters = dict(decoder.named_parameters())
    embedding, output = decoder.embed_tokens, decoder.output_projection
    parameters["output_projection.weight"] = output.weight
    if isinstance(embedding, CompactEmbedding):
        parameters["embed_tokens.weight"] = spread(embedding.weight, embedding.rows)
    elif isinstance(embedding, CompactRows):
        gates = parameters["lstm.gates.weight"].split(
            [decoder.lstm.input_size, decoder.lstm.gates.in_features - decoder.lstm.input_size], 1
        )
        parameters["lstm.gates.weight"] = torch.cat([spread(gates[0].t(), embedding.rows).t(), gates[1]], 1)
    if isinstance(output, CompactOutput):
        for name, value in output.named_parameters():
            parameters[f"output_projection.{name}"] = spread(value, output.rows)
        parameters["output_projection.possible"] = output.can_occur()
    plain.to(output.weight.device, output.weight.dtype).train(model.training)
    plain.decoder.load_state_dict(parameters)
    return plain


def _options(decoder: Any) -> LSTMOptions:
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
