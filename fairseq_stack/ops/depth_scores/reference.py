"""Scores of tokens at depths as Murty et al. (2023) have them: a vector for each pair of tokens."""

from __future__ import annotations

import torch
from torch import Tensor


def depth_scores_reference(queries: Tensor, table: Tensor, tape: Tensor) -> Tensor:
    """What Eq. 6 adds to the scores of attention: q_i . e_{ij}, where e_{ij} is the row W_i[j] of the table.

    Args:
        queries: (B, H, m, s).
        table: (H, D, s).
        tape: (B, m, n), depths from 0 to D - 1.
    """
    embeddings = table[:, tape].transpose(0, 1)  # (B, H, m, n, s)
    return (queries.unsqueeze(3) * embeddings).sum(4)


def composed_scores_reference(queries: Tensor, keys: Tensor, depths: Tensor, tape: Tensor) -> Tensor:
    """The scores of keys that a hidden layer makes of tokens and depths: q_i . ReLU(a_j + c_{ij}).

    Args:
        queries: (B, m, h).
        keys: (B, n, h), the vectors a_j.
        depths: (D, h), of which c_{ij} is the row W_i[j].
        tape: (B, m, n), depths from 0 to D - 1.
    """
    hidden = torch.relu(keys.unsqueeze(1) + depths[tape])
    return (queries.unsqueeze(2) * hidden).sum(3)
