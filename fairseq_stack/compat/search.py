"""``fairseq.search``: diverse beam search (``--diverse-beam-groups``) of any batch."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_stack.compat.replacing import replaces


@replaces("fairseq.search:DiverseBeamSearch.step")
def step(
    original: Any,
    self: Any,
    step: int,
    lprobs: Tensor,
    scores: Tensor,
    prev_output_tokens: Tensor | None = None,
    original_batch_idxs: Tensor | None = None,
) -> Any:
    """Index the overlaps between groups by the sentence's position in the batch.

    fairseq indexes them by the sentence's number in the data set, in a table with one row for each sentence of the
    batch. It crashes with "index out of bounds" if a number is too large for the table, and otherwise mixes sentences
    up.

    Unnecessary with a fairseq that indexes by the position in the batch.
    """
    if original_batch_idxs is not None:
        if step == 0:  # all sentences of the batch; later steps have only unfinished ones
            self.sentences = original_batch_idxs
        original_batch_idxs = original_batch_idxs[:, None].eq(self.sentences).long().argmax(1)
    return original(self, step, lprobs, scores, prev_output_tokens, original_batch_idxs)
