"""LSTMs that control differentiable stacks."""

from fairseq_stack.models.lstm.stack_lstm_lm import StackLSTMLanguageModel

__all__ = ["StackLSTMLanguageModel"]
