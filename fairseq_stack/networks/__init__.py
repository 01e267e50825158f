"""Whole models with stacks in plain PyTorch: transformers with any layer list, and LSTMs.

They compute exactly what fairseq's models of :mod:`fairseq_stack.models` compute, whose parameters have the same names;
``plain_model`` there makes one of the other. Begin with :class:`.transformers.StackTransformerLM`; :mod:`.options` has
all options. :mod:`.sides` are encoder and decoder, of :mod:`.layers`, whose self-attention is in :mod:`.attention`.
:mod:`.causal` is what both language models have in common.
:mod:`.recurrences` has what stacks keep of the tokens that they have read, where rows of a batch begin at different
columns.

It imports torch, ``ops``, ``modules``, ``kinds`` and ``errors``.
"""

from fairseq_stack.networks.layers import Encoded
from fairseq_stack.networks.lstm import StackLSTMLM
from fairseq_stack.networks.options import LSTMOptions, TransformerOptions
from fairseq_stack.networks.sides import DecoderState
from fairseq_stack.networks.transformers import StackTransformer, StackTransformerLM

__all__ = [
    "DecoderState",
    "Encoded",
    "LSTMOptions",
    "StackLSTMLM",
    "StackTransformer",
    "StackTransformerLM",
    "TransformerOptions",
]
