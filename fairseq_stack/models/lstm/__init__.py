"""LSTMs that control differentiable stacks."""

from fairseq_stack.models.lstm.language_model import StackLSTMLanguageModel

__all__ = ["StackLSTMLanguageModel"]
