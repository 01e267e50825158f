"""Sinusoidal positional encodings as in Vaswani et al. (2017)."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import pad


class InterleavedSinusoidalPositions(nn.Module):
    """Positional encodings with sines and cosines interleaved, the first symbol at position 0.

    ``PE[t, 2i] = sin(t / 10000^(2i / d))`` and ``PE[t, 2i + 1] = cos(t / 10000^(2i / d))``. Padding is not
    counted as a position, on whichever side it is, and gets the zero vector.

    Args:
        embedding_dim: the size d of an encoding.
        padding_idx: the token that is padding.
        max_positions: the longest sequence that is accepted.
    """

    def __init__(self, embedding_dim: int, padding_idx: int, max_positions: int) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_positions = max_positions
        self._encodings = SinusoidTable(sinusoids, embedding_dim)
        # Follows the module's dtype and device, which the table of encodings is made to match.
        self.register_buffer("_like", torch.empty(0), persistent=False)

    def forward(self, tokens: Tensor, incremental_state: object | None = None) -> Tensor:
        """Return the encodings of ``tokens`` (B, n) as (B, n, d); of the last token only, (B, 1, d), if decoding
        incrementally.

        Raises:
            ValueError: if a sequence is longer than ``max_positions``.
        """
        is_symbol = tokens.ne(self.padding_idx)
        counts = is_symbol.cumsum(1)
        if incremental_state is not None:
            is_symbol, counts = is_symbol[:, -1:], counts[:, -1:]
        # With no more columns than positions, no sequence can be too long, and the data need not be looked at.
        if tokens.size(1) > self.max_positions and counts.max() > self.max_positions:
            raise ValueError(
                f"a sequence of {int(counts.max())} symbols is longer than the {self.max_positions} positions "
                "of the model"
            )
        encodings = self._encodings.rows(max(1, min(tokens.size(1), self.max_positions)), self.get_buffer("_like"))
        positions = (counts - 1).clamp_min(0)
        return encodings[positions] * is_symbol.unsqueeze(-1).to(encodings.dtype)


class SinusoidTable:
    """The encodings of positions from 0 on, computed when they are needed.

    Args:
        compute: maps a number of positions and the size of an encoding to a table of encodings.
        embedding_dim: the size d of an encoding.
    """

    def __init__(self, compute: Callable[[int, int], Tensor], embedding_dim: int) -> None:
        self._compute = compute
        self._embedding_dim = embedding_dim
        self._table = torch.empty(0)

    def rows(self, length: int, like: Tensor) -> Tensor:
        """The encodings of the positions 0..length-1 and perhaps more, with dtype and device of ``like``."""
        table = self._table
        if table.dtype != like.dtype or table.device != like.device or table.size(0) < length:
            size = table.size(0) if table.size(0) >= length else max(length, 2 * table.size(0))
            table = self._compute(size, self._embedding_dim).to(like)
            self._table = table
        return table


def sinusoids(length: int, embedding_dim: int) -> Tensor:
    """The encodings of positions 0..length-1 as a float64 tensor (length, embedding_dim)."""
    frequencies = torch.exp(
        torch.arange(0, embedding_dim, 2, dtype=torch.float64) * (-math.log(10000.0) / embedding_dim)
    )
    angles = torch.arange(length, dtype=torch.float64).unsqueeze(1) * frequencies
    interleaved = torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
    return interleaved[:, :embedding_dim]


def halved_sinusoids(length: int, embedding_dim: int) -> Tensor:
    """fairseq's encodings of positions 0..length-1, (length, embedding_dim): sines, then cosines, in float32."""
    half = embedding_dim // 2
    frequencies = torch.exp(torch.arange(half, dtype=torch.float) * -(math.log(10000) / max(half - 1, 1)))
    angles = torch.arange(length, dtype=torch.float).unsqueeze(1) * frequencies
    return pad(torch.cat([angles.sin(), angles.cos()], dim=1), (0, embedding_dim % 2))
