"""Scores of attention that depend on the distance of two tokens."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from fairseq_stack.modules.positions import SinusoidTable, sinusoids


class DistanceScores(nn.Module):
    """``q_i . W p_{j-i}`` for sinusoids p with sines and cosines interleaved, as in the released Pushdown Layers.

    Args:
        model_size: the size of p.
        num_heads: H.
        query_size: the size s of the queries of a head.
    """

    def __init__(self, model_size: int, num_heads: int, query_size: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.projection = nn.Linear(model_size, num_heads * query_size, bias=False)
        self._table = SinusoidTable(_sinusoids_before, model_size)

    def forward(self, queries: Tensor, num_keys: int) -> Tensor:
        """The scores (B, H, m, n) of queries (B, H, m, s), which belong to the last m of n = ``num_keys`` tokens.

        The scores of keys that come after a query mean nothing.
        """
        table = self._table.rows(num_keys, self.projection.weight)[:num_keys].flip(0)
        by_distance = self.projection(table).view(num_keys, self.num_heads, -1)
        return _from_distances(torch.einsum("bhms,nhs->bhmn", queries, by_distance))


def _sinusoids_before(length: int, size: int) -> Tensor:
    """p_0, p_{-1}, ... p_{-(n-1)}, (n, size)."""
    table = sinusoids(length, size)
    table[:, ::2] *= -1
    return table


def _from_distances(scores: Tensor) -> Tensor:
    """The scores of all keys (B, H, m, n) from the scores of the distances n - 1, ..., 0.

    Query i is token n - m + i, so the score of key j is in column j + m - 1 - i. Rows that are one element longer than
    they are read make that shift.
    """
    batch_size, heads, queries, keys = scores.shape
    shifted = pad(scores, (1, 0)).view(batch_size, heads, keys + 1, queries)[:, :, 1:]
    return shifted.reshape(batch_size, heads, queries, keys)
