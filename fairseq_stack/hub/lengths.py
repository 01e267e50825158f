"""How long sentences are, and may be."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from fairseq_stack.errors import UserError


def lengths_of(sentences: Sequence[Tensor]) -> np.ndarray:
    """The number of tokens of each sentence."""
    return np.array([len(tokens) for tokens in sentences])


def require_lengths(sentences: Sequence[Tensor], limit: int) -> None:
    """Raise UserError if a sentence has more than ``limit`` tokens."""
    for number, length in enumerate(map(len, sentences), start=1):
        if length > limit:
            raise UserError(f"sentence {number} has {length:,} tokens; the model accepts at most {limit:,}")
