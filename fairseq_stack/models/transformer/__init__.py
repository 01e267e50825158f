"""Transformers whose layers are given by layer lists."""

from fairseq_stack.models.transformer.stack_transformer_lm import StackTransformerLanguageModel
from fairseq_stack.models.transformer.translation import StackTransformer

__all__ = ["StackTransformer", "StackTransformerLanguageModel"]
