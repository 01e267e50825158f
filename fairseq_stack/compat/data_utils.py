"""``fairseq.data.data_utils``: no sentence is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fairseq_stack.compat.replacing import replaces
from fairseq_stack.errors import UserError


@replaces("fairseq.data.data_utils:batch_by_size")
def batch_by_size(
    original: Any, indices: Iterable[int], num_tokens_fn: Callable[[int], int], *args: Any, **kwargs: Any
) -> list[np.ndarray]:
    """Keep the last batch, which fairseq drops silently if ``--required-batch-size-multiple`` does not divide it.

    fairseq's default is 8: of 37 sentences ``fairseq-generate`` translates 32. Training and validation lose sentences,
    too. ``fairseq-hydra-train`` reads its defaults before it imports plugins, so that 8 stays the default there.

    Raises:
        UserError: a sentence does not fit into a batch of ``--max-tokens``.

    Unnecessary with a fairseq that keeps the last batch, as it did up to 0.12.2.
    """
    if not isinstance(indices, np.ndarray):
        indices = np.fromiter(indices, dtype=np.int64)
    if len(indices) == 0:  # fairseq's function fails when there is no last batch
        return []
    try:
        batches: list[np.ndarray] = original(indices, num_tokens_fn, *args, **kwargs)
    except AssertionError as error:
        if "max_tokens=" not in str(error):
            raise
        longest = max(int(num_tokens_fn(index)) for index in indices)
        raise UserError(
            f"--max-tokens (for validation, --max-tokens-valid): expected at least {longest}, the number of tokens "
            f"of the longest sentence, got {kwargs.get('max_tokens')}"
        ) from error
    num_batched = sum(len(batch) for batch in batches)
    return batches if num_batched == len(indices) else [*batches, indices[num_batched:]]
