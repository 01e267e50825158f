"""Scores of attention that depend on the depths of tokens, for Pushdown Layers (Murty et al., 2023).

``reference.py`` is Eq. 6 with a vector for each pair of tokens; begin there. The functions below and ``pytorch.py``
compute the same on all devices without these vectors, by products with the table of depths. An equation that changes,
changes in both.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._arguments import Sizes, computation_dtype, without_autocast
from .._transforms import is_transformed
from .pytorch import composed_scores_pytorch, depth_scores_pytorch
from .reference import composed_scores_reference

__all__ = ["composed_scores", "depth_scores"]


def depth_scores(queries: Tensor, table: Tensor, tape: Tensor) -> Tensor:
    """What the depths of tokens add to the scores of attention (Eq. 6 of Murty et al., 2023):

        score_{ij} = q_i . e_{W_i[j]} = (q_i E^T)[W_i[j]].

    Args:
        queries: (B, H, m, s), of H heads.
        table: the embeddings of depths, (H, D, s), or (D, s) if the heads share them.
        tape: W_i, a LongTensor (B, m, n). Depths that the table does not have become its last.

    Returns:
        The scores (B, H, m, n), computed in O(m n + m D) memory for each head.

    Raises:
        ValueError: an argument's shape or dtype is wrong, or a depth is negative.
    """
    sizes = Sizes()
    sizes.check("queries", queries, "B H m s")
    table = (table.unsqueeze(0).expand(queries.size(1), -1, -1) if table.dim() == 2 else table).to(queries.dtype)
    sizes.check("table", table, "H D s")
    _check_tape(tape, (queries.size(0), queries.size(2)))
    return depth_scores_pytorch(queries, table, tape.clamp(max=table.size(1) - 1))


def composed_scores(queries: Tensor, keys: Tensor, depths: Tensor, tape: Tensor) -> Tensor:
    """The scores of keys that a hidden layer makes of tokens and their depths:

        score_{ij} = q_i . ReLU(a_j + c_{W_i[j]}).

    Args:
        queries: (B, m, h).
        keys: the vectors a_j, (B, n, h).
        depths: the vectors c of the depths, (D, h).
        tape: W_i, a LongTensor (B, m, n). Depths that there is no vector for become the last.

    Returns:
        The scores (B, m, n), in the dtype of ``queries``; computed in float32 or float64, whatever autocast says, in
        O(m n + n h) memory. They can be differentiated once.

    Raises:
        ValueError: an argument's shape, dtype or device is wrong, or a depth is negative.
    """
    sizes = Sizes()
    sizes.check("queries", queries, "B m h")
    sizes.check("keys", keys, "B n h")
    sizes.check("depths", depths, "D h")
    _check_tape(tape, (*queries.shape[:2], keys.size(1)))
    by_reference = queries.size(1) == 1 or is_transformed(queries, keys, depths)
    compute = composed_scores_reference if by_reference else composed_scores_pytorch
    dtype = computation_dtype(queries.dtype)
    with without_autocast(queries.device):
        clamped = tape.clamp(max=len(depths) - 1)
        return compute(queries.to(dtype), keys.to(dtype), depths.to(dtype), clamped).to(queries.dtype)


def _check_tape(tape: Tensor, shape: tuple[int, ...]) -> None:
    if tape.dim() != 3 or tape.shape[: len(shape)] != shape or tape.dtype != torch.long:
        expected = ", ".join([*map(str, shape), "n"][:3])
        raise ValueError(
            f"tape: expected a LongTensor of shape ({expected}), got shape {tuple(tape.shape)} of {tape.dtype}"
        )
    if tape.numel() and not (torch.compiler.is_compiling() or is_transformed(tape)) and int(tape.min()) < 0:
        raise ValueError(f"tape: expected depths from 0 on, got {int(tape.min())}")
