"""LSTMs that control differentiable stacks."""
