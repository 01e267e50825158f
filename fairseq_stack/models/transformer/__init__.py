"""Transformers whose layers are given by layer lists."""

from fairseq_stack.models.transformer.language_model import StackTransformerLanguageModel
from fairseq_stack.models.transformer.translation import StackTransformer

__all__ = ["StackTransformer", "StackTransformerLanguageModel"]
