"""Losses and probabilities: exact for symbols that cannot occur, and for models in float64."""

from __future__ import annotations

import sys

import torch
from torch import Tensor

from fairseq_stack.ops import computation_dtype


def label_smoothed_nll_loss(
    lprobs: Tensor, target: Tensor, epsilon: float, ignore_index: int | None = None, reduce: bool = True
) -> tuple[Tensor, Tensor]:
    """fairseq's label-smoothed loss, smoothed over the symbols that can occur.

    A symbol with log-probability -inf in the first row cannot occur: models give -inf to the same symbols
    everywhere. The loss and its gradient are fairseq's for a vocabulary without these symbols; where every
    log-probability is finite they are fairseq's to the last bit.

    Args:
        lprobs: log-probabilities (..., V).
        target: indices of the right symbols (...) or (..., 1).
        epsilon: probability that is taken from the right symbol and spread over the others.
        ignore_index: targets that do not count.
        reduce: return sums over all targets instead of one loss a target.

    Returns:
        The smoothed loss and the negative log-likelihood.
    """
    nll_loss, smooth_loss, num_possible = negative_log_likelihoods(lprobs, target, ignore_index, reduce)
    epsilon_each = epsilon / (num_possible - 1)
    return (1.0 - epsilon - epsilon_each) * nll_loss + epsilon_each * smooth_loss, nll_loss


def negative_log_likelihoods(
    lprobs: Tensor, target: Tensor, ignore_index: int | None = None, reduce: bool = True
) -> tuple[Tensor, Tensor, int]:
    """The terms of a label-smoothed loss, with the arguments of :func:`label_smoothed_nll_loss`.

    Returns:
        The negative log-likelihoods of the targets, their sums over all symbols that can occur, and the number of these
        symbols.
    """
    if target.dim() == lprobs.dim() - 1:
        target = target.unsqueeze(-1)
    nll_loss = -lprobs.gather(dim=-1, index=target)
    impossible = lprobs.reshape(-1, lprobs.size(-1))[:1].isneginf().any(dim=0)
    num_impossible = int(impossible.sum())
    if num_impossible:  # left out before the sum, since backward through an infinite sum gives NaN
        lprobs = lprobs.masked_fill(impossible, 0.0)
    smooth_loss = -lprobs.sum(dim=-1, keepdim=True)
    if ignore_index is not None:
        pad_mask = target.eq(ignore_index)
        nll_loss = nll_loss.masked_fill(pad_mask, 0.0)
        smooth_loss = smooth_loss.masked_fill(pad_mask, 0.0)
    else:
        nll_loss = nll_loss.squeeze(-1)
        smooth_loss = smooth_loss.squeeze(-1)
    if reduce:
        nll_loss = nll_loss.sum()
        smooth_loss = smooth_loss.sum()
    return nll_loss, smooth_loss, lprobs.size(-1) - num_impossible


def smooth_over_possible_symbols() -> None:
    """Replace fairseq's function by :func:`label_smoothed_nll_loss` wherever a criterion has imported it.

    fairseq's function sums the log-probabilities of the whole dictionary, which is infinite with ``--compact-vocab``,
    where symbols that cannot occur (``<pad>``, ``madeupword0000``, ...) have probability 0. Unnecessary with
    a fairseq that skips them.
    """
    from fairseq.criterions import label_smoothed_cross_entropy

    original = label_smoothed_cross_entropy.label_smoothed_nll_loss
    for name, module in list(sys.modules.items()):
        if name.startswith("fairseq.criterions.") and vars(module).get("label_smoothed_nll_loss") is original:
            vars(module)["label_smoothed_nll_loss"] = label_smoothed_nll_loss


def softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """``fairseq.utils.softmax``: in float32, or in float64 if ``x`` is."""
    return torch.softmax(x, dim, dtype=computation_dtype(x.dtype))


def log_softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """``fairseq.utils.log_softmax``: in float32, or in float64 if ``x`` is."""
    return torch.log_softmax(x, dim, dtype=computation_dtype(x.dtype))


def keep_double_precision() -> None:
    """Let attention weights and probabilities of a float64 model be float64.

    fairseq computes every softmax in float32, which is right for half precision but costs a model in float64
    eight digits, so that it cannot be compared exactly with another implementation. Unnecessary with a
    fairseq whose softmax does not round down.
    """
    from fairseq import utils

    utils.softmax = softmax
    utils.log_softmax = log_softmax
