"""Batches whose tapes are written by the model's own decisions instead of the gold parses."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fairseq_stack.ops import oracle_attachments, roots_of_sentences

from ._attachments import with_parses


def with_own_tapes(sample: dict[str, Any], decoder: Any, share: float, *, seed: int, update: int) -> dict[str, Any]:
    """A batch in which a share of the samples, drawn at random, have the tapes of the model's own decisions.

    Their words are to attach to what is best on these tapes; see :func:`fairseq_stack.ops.oracle_attachments`. The
    draw depends on the seed, the update and the samples only, so it is the same when training is resumed.

    Args:
        sample: a batch of :class:`WithAttachments`.
        decoder: decides; see :meth:`PushdownDecoder.own_attachments`.
        share: the probability of each sample to have its own tape.
        seed: of the draw.
        update: the number of the update.

    Returns:
        The batch, with the number of samples whose tape differs from the gold one under ``"wrong_tapes"``.
    """
    attached, gold = sample["attachments"], sample["parses"]
    draw = np.random.default_rng([seed, update, *sample["id"].tolist()])
    rows = torch.from_numpy((draw.random(len(sample["id"])) < share).nonzero()[0]).to(attached.device)
    parses = gold.clone()
    if len(rows):
        parses[rows] = decoder.own_attachments(sample["net_input"]["src_tokens"][rows], gold[rows])
    best = torch.cat([oracle_attachments(parses, gold)[:, 1:], attached[:, -1:]], 1)  # The last one is not a word.
    best = torch.where(attached == roots_of_sentences(gold), attached, best)  # Ends have no choice.
    return {**with_parses(sample, parses, best), "wrong_tapes": (parses != gold).any(1).sum()}
