"""Scores of tokens at depths without a vector for each pair of tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def depth_scores_pytorch(queries: Tensor, table: Tensor, tape: Tensor) -> Tensor:
    """As ``depth_scores_reference``: a query has one score for each depth, and each pair takes its own from there."""
    by_depth = torch.matmul(queries, table.transpose(1, 2))
    return by_depth.gather(3, tape.unsqueeze(1).expand(-1, queries.size(1), -1, -1))


def composed_scores_pytorch(queries: Tensor, keys: Tensor, depths: Tensor, tape: Tensor) -> Tensor:
    """As ``composed_scores_reference``: all pairs have one score for each depth, computed one depth after the other."""
    scores: Tensor = _ComposedScores.apply(queries, keys, depths, tape)
    return scores


class _ComposedScores(torch.autograd.Function):
    """Autograd would keep the hidden layer of each depth. This keeps none, and computes it again."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, depths: Tensor, tape: Tensor) -> Tensor:
        ctx.save_for_backward(queries, keys, depths, tape)
        scores = queries.new_zeros(tape.shape)
        for depth in range(_number_of_depths(tape)):
            hidden = (keys + depths[depth]).relu_()
            scores = torch.where(tape == depth, torch.bmm(queries, hidden.transpose(1, 2)), scores)
        return scores

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        queries, keys, depths, tape = ctx.saved_tensors
        grad_queries, grad_keys, grad_depths = map(torch.zeros_like, (queries, keys, depths))
        for depth in range(_number_of_depths(tape)):
            hidden = (keys + depths[depth]).relu_()
            grad = grad_scores.masked_fill(tape != depth, 0)
            grad_queries += torch.bmm(grad, hidden)
            grad_hidden = torch.ops.aten.threshold_backward(torch.bmm(grad.transpose(1, 2), queries), hidden, 0)
            grad_keys += grad_hidden
            grad_depths[depth] = grad_hidden.sum((0, 1))
        return grad_queries, grad_keys, grad_depths, None


def _number_of_depths(tape: Tensor) -> int:
    return int(tape.max()) + 1 if tape.numel() else 0
