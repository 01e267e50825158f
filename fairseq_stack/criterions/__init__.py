"""Losses that fairseq lacks. Importing this package registers them."""

from fairseq_stack import compat

compat.apply()

from fairseq_stack.criterions.pushdown_cross_entropy import (  # noqa: E402
    PushdownCrossEntropyCriterion,
    PushdownCrossEntropyCriterionConfig,
)
from fairseq_stack.criterions.torch_cross_entropy import (  # noqa: E402
    TorchCrossEntropyCriterion,
    TorchCrossEntropyCriterionConfig,
)

__all__ = [
    "PushdownCrossEntropyCriterion",
    "PushdownCrossEntropyCriterionConfig",
    "TorchCrossEntropyCriterion",
    "TorchCrossEntropyCriterionConfig",
]
