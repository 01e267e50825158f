"""Initialization as in Appendix D.2 of DuSell & Chiang (2024)."""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import torch
from torch import nn

from fairseq_stack.models.shared_options import initial_scale
from fairseq_stack.models.transformer.layers import StackDecoderLayer, StackEncoderLayer
from fairseq_stack.modules import StackAttention
from fairseq_stack.modules.stack_attention import draw_linear


def initialize(model: Any, args: Namespace) -> None:
    """Initialise the model again if ``--stack-init paper`` is set.

    Raises:
        UserError: the scale is not a positive number, or has no effect.
    """
    scale = initial_scale(args, 0.01)
    if args.stack_init == "paper":
        initialize_as_in_paper(model, scale)
        if not args.share_decoder_input_output_embed:
            draw_linear(model.decoder.output_projection)


@torch.no_grad()
def initialize_as_in_paper(model: nn.Module, scale: float) -> None:
    """Initialise all parameters of a stack transformer as the paper's experiments did.

    Fully connected layers are Xavier uniform with biases 0, except in SDPA layers; layer norm has weights 1
    and biases 0; everything else (embeddings, bottom vectors, SDPA layers, cross-attention) is uniform in
    [-scale, scale]. The first feedforward layer has gain sqrt(2), for its ReLU.
    """
    for parameter in model.parameters():
        parameter.uniform_(-scale, scale)
    for module in model.modules():
        if type(module).__name__.endswith("LayerNorm"):
            nn.init.ones_(module.get_parameter("weight"))
            nn.init.zeros_(module.get_parameter("bias"))
        elif isinstance(module, StackAttention):
            module.initialize_as_in_paper()
        elif isinstance(module, StackEncoderLayer | StackDecoderLayer):
            draw_linear(module.fc1, gain=math.sqrt(2))
            draw_linear(module.fc2)
        elif isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx].zero_()
