"""The syntactic language model with Pushdown Layers. Importing this package registers it."""

from fairseq_stack.models.pushdown.pushdown_transformer_lm import PushdownLanguageModel

__all__ = ["PushdownLanguageModel"]
