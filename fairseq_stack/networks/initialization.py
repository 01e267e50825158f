"""Initialization: as in the papers' experiments, and with stacks that push and pop from the beginning."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from fairseq_stack.modules import Gate, StatefulAttention
from fairseq_stack.modules.stack_attention import draw_linear


@torch.no_grad()
def initialize_transformer(model: Any, init: str, scale: float) -> None:
    """Initialise a new stack transformer, whose modules have initialised themselves as fairseq's do.

    ``"fairseq"`` leaves it as it is. ``"paper"`` is Appendix D.2 of DuSell & Chiang (2024): fully connected layers are
    Xavier uniform with biases 0, except in SDPA layers; layer norm has weights 1 and biases 0; everything else
    (embeddings, bottom vectors, SDPA layers, cross-attention) is uniform in [-scale, scale]. The first feedforward
    layer has gain sqrt(2), for its ReLU. With ``"one-turn"``, automata begin as
    :meth:`~fairseq_stack.modules.StatefulAttention.initialize_as_one_turn` says, and layers without a stack begin as
    the identity: attention to themselves and feed-forward networks have the output 0. Stacks are then at first the only
    way to see other symbols. Gates of stacks beside attention always begin closed.

    Args:
        model: the transformer, of these networks or of fairseq's models. Its decoder, if it has one, has the
            output layer.
        init: the initialisation.
        scale: the scale.
    """
    if init == "paper":
        _initialize_as_in_paper(model, scale)
    elif init == "one-turn":
        for module in model.modules():
            if isinstance(module, StatefulAttention):
                module.initialize_as_one_turn()
            elif hasattr(module, "self_attn") and not _has_stack(module):
                for output in (module.self_attn.out_proj, module.fc2):
                    nn.init.zeros_(output.weight)
                    nn.init.zeros_(output.bias)


def _initialize_as_in_paper(model: Any, scale: float) -> None:
    _draw_uniform(model, scale)
    for module in model.modules():
        if type(module).__name__.endswith("LayerNorm"):
            nn.init.ones_(module.get_parameter("weight"))
            nn.init.zeros_(module.get_parameter("bias"))
        elif isinstance(module, StatefulAttention):
            module.initialize_as_in_paper()
        elif isinstance(module, Gate):
            module.close()
        elif _has_stack(module):
            draw_linear(module.get_submodule("fc1"), gain=math.sqrt(2))
            draw_linear(module.get_submodule("fc2"))
    _draw_output(getattr(model, "decoder", model))


@torch.no_grad()
def initialize_lstm(decoder: Any, init: str, scale: float) -> None:
    """Initialise all parameters of the decoder of a stack LSTM.

    They are uniform in [-scale, scale]. With ``"paper"``, Appendix D.2 of DuSell & Chiang (2024), the fully connected
    layers are Xavier uniform instead, with biases 0: the output layer, unless it is the table of the embeddings, and
    the layers that drive stacks, as :meth:`~fairseq_stack.modules.StatefulAttention.initialize_as_in_paper` of each
    kind says. With ``"one-turn"``, automata begin as its ``initialize_as_one_turn`` says.

    Args:
        decoder: the decoder, of these networks or of fairseq's models.
        init: the initialisation.
        scale: the scale.
    """
    _draw_uniform(decoder, scale)
    for stack in decoder.lstm.stacks:
        if init == "paper":
            stack.initialize_as_in_paper()
        elif init == "one-turn":
            stack.initialize_as_one_turn()
    if init == "paper":
        _draw_output(decoder)


def _has_stack(module: nn.Module) -> bool:
    """Whether a module is a layer with stack attention."""
    return isinstance(getattr(getattr(module, "self_attn", None), "attention", None), StatefulAttention)


def _draw_uniform(model: nn.Module, scale: float) -> None:
    for parameter in model.parameters():
        parameter.uniform_(-scale, scale)
    for module in model.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx].zero_()


def _draw_output(decoder: Any) -> None:
    """Draw the output layer, unless it has the table of the embeddings."""
    output = decoder.output_projection
    if output.weight is not getattr(decoder.embed_tokens, "weight", None):
        draw_linear(output)
