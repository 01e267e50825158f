"""fairseq's tasks with what stack models need. Importing this package registers them."""

from fairseq_stack import compat

compat.apply()

from .pushdown_language_modeling import (  # noqa: E402
    PushdownLanguageModelingConfig,
    PushdownLanguageModelingTask,
)
from .stack_language_modeling import StackLanguageModelingConfig, StackLanguageModelingTask  # noqa: E402
from .stack_transduction import StackTransductionConfig, StackTransductionTask  # noqa: E402
from .stack_translation import StackTranslationConfig, StackTranslationTask  # noqa: E402
from .truncated_bptt import StackTruncatedBPTTConfig, StackTruncatedBPTTTask  # noqa: E402

__all__ = [
    "PushdownLanguageModelingConfig",
    "PushdownLanguageModelingTask",
    "StackLanguageModelingConfig",
    "StackLanguageModelingTask",
    "StackTransductionConfig",
    "StackTransductionTask",
    "StackTranslationConfig",
    "StackTranslationTask",
    "StackTruncatedBPTTConfig",
    "StackTruncatedBPTTTask",
]
