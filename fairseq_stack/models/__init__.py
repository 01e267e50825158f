"""The architectures that fairseq knows after ``--user-dir fairseq_stack``: importing this package registers them."""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.models.lstm import StackLSTMLanguageModel  # noqa: E402  (needs the shims above)
from fairseq_stack.models.neural_stack import BufferedNeuralStackModel, NeuralStackModel  # noqa: E402
from fairseq_stack.models.pushdown import PushdownLanguageModel  # noqa: E402
from fairseq_stack.models.transformer import StackTransformer, StackTransformerLanguageModel  # noqa: E402

__all__ = [
    "BufferedNeuralStackModel",
    "NeuralStackModel",
    "PushdownLanguageModel",
    "StackLSTMLanguageModel",
    "StackTransformer",
    "StackTransformerLanguageModel",
]
