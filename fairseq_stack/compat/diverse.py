"""Diverse beam search (``--diverse-beam-groups``) for batches with any sentences of the data set."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_stack.compat.wrapping import Function, wrap_once


def count_overlaps_by_place_in_batch() -> None:
    """Let diverse beam search index the overlaps of its groups by a sentence's place in the batch.

    fairseq indexes them by the sentence's number in the data set, in a table with one row for each sentence of the
    batch. It crashes with "index out of bounds" if a number is too large for the table, and otherwise mixes sentences
    up. Unnecessary with a fairseq that indexes by the place in the batch.
    """
    from fairseq.search import DiverseBeamSearch

    wrap_once(DiverseBeamSearch, "step", _by_place)


def _by_place(step_of: Function) -> Function:
    def step_by_place(
        self: Any,
        step: int,
        lprobs: Tensor,
        scores: Tensor,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
    ) -> Any:
        if original_batch_idxs is not None:
            if step == 0:  # all sentences of the batch; later steps have only unfinished ones
                self.sentences = original_batch_idxs
            original_batch_idxs = original_batch_idxs[:, None].eq(self.sentences).long().argmax(1)
        return step_of(self, step, lprobs, scores, prev_output_tokens, original_batch_idxs)

    return step_by_place
