"""The syntactic language model with Pushdown Layers. Importing this package registers it."""

from fairseq_stack.models.pushdown.language_model import PushdownLanguageModel

__all__ = ["PushdownLanguageModel"]
