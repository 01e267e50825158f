"""Batches whose tapes are written by the model's own decisions instead of the gold parses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fairseq_stack.ops import oracle_attachments

from ._attachments import parse_before_end, with_parses


def with_own_tapes(sample: dict[str, Any], decoder: Any, share: float, *, seed: int, update: int) -> dict[str, Any]:
    """A batch in which a share of the sentences, drawn at random, have the tapes of the model's own decisions.

    Their words are to attach to what is best on these tapes; see :func:`fairseq_stack.ops.oracle_attachments`. The
    draw depends on the seed, the update and the sentences only, so it is the same when training is resumed.

    Args:
        sample: a batch of :class:`WithAttachments`.
        decoder: decides; see :meth:`PushdownDecoder.own_attachments`.
        share: the probability of each sentence to have its own tape.
        seed: of the draw.
        update: the number of the update.

    Returns:
        The batch, with the number of sentences whose tape differs from the gold one under ``"wrong_tapes"``.
    """
    attached = sample["attachments"]
    draw = np.random.default_rng([seed, update, *sample["id"].tolist()])
    rows = torch.from_numpy((draw.random(len(sample["id"])) < share).nonzero()[0]).to(attached.device)
    gold = parse_before_end(attached)
    parses = gold.clone()
    if len(rows):
        parses[rows] = decoder.own_attachments(sample["net_input"]["src_tokens"][rows], gold[rows])
    best = torch.cat([oracle_attachments(parses, gold)[:, 1:], attached[:, -1:]], 1)  # The last one is not a word.
    best = best.masked_fill(attached == 0, 0)
    return {**with_parses(sample, parses, best), "wrong_tapes": (parses != gold).any(1).sum()}
