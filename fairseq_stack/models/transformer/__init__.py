"""Transformers whose layers are given by layer lists."""

from fairseq_stack.models.transformer.stack_transformer import StackTransformer
from fairseq_stack.models.transformer.stack_transformer_lm import StackTransformerLanguageModel

__all__ = ["StackTransformer", "StackTransformerLanguageModel"]
