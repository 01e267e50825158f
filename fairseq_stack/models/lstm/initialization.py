"""Initialization as in the papers' experiments."""

from __future__ import annotations

from argparse import Namespace

import torch
from torch import nn

from fairseq_stack.models.lstm.lstm_decoder import StackLSTMDecoder
from fairseq_stack.models.shared_options import initial_scale
from fairseq_stack.modules import StackAttention
from fairseq_stack.modules.stack_attention import draw_linear

FAIRSEQ_SCALE = 0.1
"""The parameters of fairseq's LSTM are from [-0.1, 0.1]."""


@torch.no_grad()
def initialize(decoder: StackLSTMDecoder, args: Namespace) -> None:
    """Initialise all parameters as ``--stack-init`` says.

    They are uniform in [-scale, scale]. In Appendix D.2 of DuSell & Chiang (2024) the fully connected layers are
    Xavier uniform instead, with biases 0: the output layer, unless it is the table of the embeddings, and the layers
    that drive stacks, as :meth:`~fairseq_stack.modules.StackAttention.initialize_as_in_paper` of each kind says.

    Raises:
        UserError: the scale is not a positive number, or has no effect.
    """
    scale = initial_scale(args, FAIRSEQ_SCALE)
    for parameter in decoder.parameters():
        parameter.uniform_(-scale, scale)
    for module in decoder.modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            module.weight[module.padding_idx].zero_()
    if args.stack_init == "paper":
        for stack in decoder.lstm.stacks:
            assert isinstance(stack, StackAttention)
            stack.initialize_as_in_paper()
        if not args.share_decoder_input_output_embed:
            draw_linear(decoder.output_projection)
