"""The architectures that fairseq knows after ``--user-dir fairseq_stack``: importing this package registers them."""

from fairseq_stack import compat
from fairseq_stack.hub.companions import save_companions_with_checkpoints

compat.apply()
save_companions_with_checkpoints()

from fairseq_stack.models.transformer import (  # noqa: E402  (needs the shims above)
    StackTransformer,
    StackTransformerLanguageModel,
)

__all__ = ["StackTransformer", "StackTransformerLanguageModel"]
