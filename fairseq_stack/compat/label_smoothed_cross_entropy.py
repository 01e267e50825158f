"""``fairseq.criterions.label_smoothed_cross_entropy``: a loss that is finite if some symbols cannot occur."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from fairseq_stack.compat.replacing import replaces

_MODULE = "fairseq.criterions.label_smoothed_cross_entropy"
_NAME = "label_smoothed_nll_loss"


@replaces(f"{_MODULE}:{_NAME}", f"{_MODULE}_with_rdrop:{_NAME}")
def label_smoothed_nll_loss(
    original: Any,
    lprobs: Tensor,
    target: Tensor,
    epsilon: float,
    ignore_index: int | None = None,
    reduce: bool = True,
) -> tuple[Tensor, Tensor]:
    """Smooth over the symbols that can occur; if all can, the loss and its gradient equal fairseq's bit for bit.

    fairseq's function sums the log-probabilities of the whole dictionary, which is infinite with ``--compact-vocab``,
    where symbols that cannot occur (``<pad>``, ``madeupword0000``, ...) have probability 0. A symbol with
    log-probability -inf in the first row cannot occur: models give -inf to the same symbols everywhere. The loss and
    its gradient are fairseq's for a vocabulary without these symbols.

    Args:
        original: fairseq's function.
        lprobs: log-probabilities (..., V).
        target: indices of the right symbols (...) or (..., 1).
        epsilon: probability that is taken from the right symbol and spread over the others.
        ignore_index: targets that do not count.
        reduce: return sums over all targets instead of one loss per target.

    Returns:
        The smoothed loss and the negative log-likelihood.

    For every model; different only with ``--compact-vocab``. Unnecessary with a fairseq that leaves out symbols of
    probability 0.
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
