"""The two directions in which vectors vary the most."""

from __future__ import annotations

import torch
from torch import Tensor


def principal_components(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors (N, d) in the two directions in which they vary the most, and how much of their variance that is.

    Returns:
        Coordinates, (N, 2), relative to the mean; and the shares of the variance, (2,). A direction in which nothing
        varies has the coordinates and the share 0. The sign of each direction is chosen such that its largest element
        is positive.
    """
    centred = vectors - vectors.mean(0)
    _, spread, directions = torch.linalg.svd(centred, full_matrices=False)
    varies = spread > spread.sum() * 1e-12
    spread, directions = spread[varies][:2], directions[varies][:2]
    largest = directions.gather(1, directions.abs().argmax(1, keepdim=True))
    coordinates, shares = vectors.new_zeros(len(vectors), 2), vectors.new_zeros(2)
    coordinates[:, : len(spread)] = centred @ (directions * largest.sign()).T
    if len(spread):
        shares[: len(spread)] = spread.square() / centred.square().sum()
    return coordinates, shares
