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
from fairseq_stack.criterions.transduction import TransductionCriterion, TransductionCriterionConfig  # noqa: E402

__all__ = [
    "PushdownCrossEntropyCriterion",
    "PushdownCrossEntropyCriterionConfig",
    "TorchCrossEntropyCriterion",
    "TorchCrossEntropyCriterionConfig",
    "TransductionCriterion",
    "TransductionCriterionConfig",
]
