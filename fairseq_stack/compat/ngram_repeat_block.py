"""``fairseq.ngram_repeat_block``: ``--no-repeat-ngram-size`` without fairseq's CUDA extension."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor

from fairseq_stack.compat.replacing import replaces


@replaces("fairseq.ngram_repeat_block:NGramRepeatBlock._no_repeat_ngram")
def no_repeat_ngram(
    original: Any, self: Any, tokens: Tensor, lprobs: Tensor, bsz: int, beam_size: int, step: int
) -> Tensor:
    """In log-probabilities (B * K, V), forbid each symbol that would repeat an n-gram of its row, except in a prefix.

    fairseq looks for the last tokens of a hypothesis at the end of a buffer that is longer than every hypothesis, so
    it compares padding and forbids nothing.

    Unnecessary with a fairseq that compares with the end of the hypothesis.
    """
    num_recent = self.no_repeat_ngram_size - 1
    is_prefix = lprobs.isfinite().sum(1).le(1).tolist()  # fairseq has forbidden all other symbols
    for row, history in enumerate(tokens[:, 1 : step + 1].tolist()):
        if is_prefix[row]:
            continue
        starts = range(step - num_recent)
        recent = history[step - num_recent :]
        repeated = [history[i + num_recent] for i in starts if history[i : i + num_recent] == recent]
        lprobs[row, repeated] = -math.inf
    return lprobs
