"""The architectures that fairseq knows after ``--user-dir fairseq_stack``: importing this package registers them."""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.models.stack_transformer import StackTransformer  # noqa: E402  (needs the shims above)
from fairseq_stack.models.stack_transformer_lm import StackTransformerLanguageModel  # noqa: E402

__all__ = ["StackTransformer", "StackTransformerLanguageModel"]
