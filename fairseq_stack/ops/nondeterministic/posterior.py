"""How probable transitions are, given the weights of all steps: derivatives and differences of log Z (Section 11)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .._arguments import without_autocast
from ._log_partition import log_partition
from ._log_weights import check_transitions


class Transitions(NamedTuple):
    """A number for each transition in each step."""

    push: Tensor  # of q, x -> r, xy in step t at index [b, t - 1, q, x, r, y], (B, n, Q, S, Q, S)
    replace: Tensor  # of q, x -> r, y, (B, n, Q, S, Q, S)
    pop: Tensor  # of q, x -> r, eps at index [b, t - 1, q, x, r], (B, n, Q, S, Q)


def transition_posterior(
    push: Tensor, replace: Tensor, pop: Tensor, *, backend: str = "auto", window: int | None = None
) -> Transitions:
    """The probability that a run takes a transition in a step, if runs of n steps are drawn by their weights.

    It is the derivative of log Z_n, the logarithm of the weight of all runs of n steps, with respect to the log weight
    of the transition:

        p(step t takes q, x -> r, y) = d log Z_n / d log Delta_t[q, x -> r, y].

    For the posterior given the first t steps alone, pass the log weights of these steps.

    Args:
        push: log weights as for ``nondeterministic_stack``, (B, n, Q, S, Q, S).
        replace: (B, n, Q, S, Q, S).
        pop: (B, n, Q, S, Q).
        backend: as for ``nondeterministic_stack``.
        window: as for ``nondeterministic_stack``.

    Returns:
        Probabilities, in the dtype of the arguments. All probabilities of a step sum to 1, or are 0 if there is no run
        of n steps, or NaN if a log weight of a step is NaN or inf. Autograd does not follow them.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, the window is not positive, or there is no
            such backend.
    """
    check_transitions(push, replace, pop, window)
    length = push.shape[1]
    if length == 0:
        return Transitions(*(x.detach().clone() for x in (push, replace, pop)))
    forgets = window is not None and window <= length
    with torch.inference_mode(False), torch.enable_grad(), without_autocast(push.device):
        leaves = [x.detach().clone().requires_grad_() for x in (push, replace, pop)]
        last = log_partition(*leaves, backend=backend, window=window if forgets else None)[:, -1]
        gradients = torch.autograd.grad(last.sum(), leaves)
    undefined = torch.where(last.isnan(), last, 0).detach()
    return Transitions(*(x + undefined.reshape(-1, *[1] * (x.dim() - 1)) for x in gradients))


def allowed_log_probability(
    push: Tensor, replace: Tensor, pop: Tensor, *, allowed: Transitions, backend: str = "auto"
) -> Tensor:
    """The log-probability that each of the first t steps takes an allowed transition, if runs over t inputs are drawn
    by their weights.

    It is log Z_t of the allowed transitions alone, the others having log weights of -inf, minus log Z_t of all.

    Args:
        push: log weights as for ``nondeterministic_stack``, (B, n, Q, S, Q, S).
        replace: (B, n, Q, S, Q, S).
        pop: (B, n, Q, S, Q).
        allowed: whether each transition is allowed, in shapes that can be broadcast to those of the log weights.
        backend: as for ``nondeterministic_stack``.

    Returns:
        Log-probabilities (B, n), in float64, which can be differentiated; -inf where no run is allowed.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, or there is no such backend.
    """
    check_transitions(push, replace, pop, None)
    weights = [x.double() for x in (push, replace, pop)]
    for name, mask, x in zip(Transitions._fields, allowed, weights, strict=True):
        sizes = zip(reversed(mask.shape), reversed(x.shape), strict=False)
        if mask.dtype != torch.bool or mask.dim() > x.dim() or any(size not in (1, wanted) for size, wanted in sizes):
            got = f"{mask.dtype} of shape {tuple(mask.shape)}"
            raise ValueError(
                f"allowed.{name}: expected booleans of a shape that broadcasts to {tuple(x.shape)}, got {got}"
            )
    with without_autocast(push.device):
        kept = [x.masked_fill(~mask, -torch.inf) for x, mask in zip(weights, allowed, strict=True)]
        both = [torch.cat(pair) for pair in zip(weights, kept, strict=True)]
        of_all, of_allowed = log_partition(*both, backend=backend).chunk(2)
    of_all = of_all.masked_fill(of_all == -torch.inf, 0)  # then no run is allowed, either
    return of_allowed - of_all
