"""W of a nondeterministic stack with limited memory, as the kernels for GPUs leave it.

Times and rows are in tiles of T coordinates: row i has the coordinate i + 1, and time t the coordinate t + 1. The
weights of a reading are (B, n, C, width): of as many rows, up to the last row of the time's tile.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._triton.nondeterministic.sizes import Sizes


def readings(weights: Tensor, vectors: Tensor, sizes: Sizes) -> Tensor:
    """The readings (B, n, C, m) of v_0..v_n, (B, n + 1, m): a product for each tile of times."""
    tiles, tile = sizes.tiles, sizes.tile
    before = (sizes.bands - 1) * tile
    rows = pad(vectors, (0, 0, before, tiles * tile - vectors.shape[1]))
    rows = rows.unfold(1, sizes.width, tile).transpose(2, 3)  # (B, tiles, width, m)
    times = pad(weights, (0, 0, 0, 0, 2, tiles * tile - sizes.length - 2))
    product = torch.bmm(times.unflatten(1, (tiles, tile)).flatten(0, 1).flatten(1, 2), rows.flatten(0, 1))
    product = product.view(sizes.batch, tiles * tile, sizes.top, vectors.shape[2])
    return product[:, 2 : sizes.length + 2]


def banded(weights: Tensor, sizes: Sizes) -> Tensor:
    """From weights of all vectors, (B, n, C, n + 1)."""
    weights = pad(weights, ((sizes.bands - 1) * sizes.tile, sizes.tile))
    return torch.cat([weights[:, steps, :, rows] for steps, rows in _columns(sizes)], 1)


def dense(weights: Tensor, sizes: Sizes) -> Tensor:
    """The inverse of ``banded``."""
    before = (sizes.bands - 1) * sizes.tile
    full = weights.new_zeros(len(weights), sizes.length, sizes.top, before + sizes.tiles * sizes.tile)
    for steps, rows in _columns(sizes):
        full[:, steps, :, rows] = weights[:, steps]
    return full[..., before : before + sizes.length + 1]


def _columns(sizes: Sizes) -> Iterator[tuple[slice, slice]]:
    """For each tile of times: its steps, and the rows with a weight, counted from the first row of the first tile."""
    for begin in range(0, sizes.tiles * sizes.tile, sizes.tile):
        steps = slice(max(begin - 2, 0), min(begin + sizes.tile - 2, sizes.length))
        yield steps, slice(begin, begin + sizes.width)
