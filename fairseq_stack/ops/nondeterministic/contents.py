"""The possible contents of a nondeterministic stack as a finite automaton (DuSell and Chiang, 2020, Section 4)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._log_weights import check_defined, check_transitions, join_transitions
from ._tracked_columns import TrackedColumns


class StackNode(NamedTuple):
    """A configuration: after a step (-1: before the bottom lies there), in a state, with a symbol on top."""

    step: int
    state: int
    symbol: int


class StackEdge(NamedTuple):
    """A symbol that may lie on the stack: the symbol of ``target``.

    Attributes:
        source: the configuration that it was pushed onto, in the step after ``source.step``.
        target: the configuration in which it is on top for the last time: before the next symbol on the stack is
            pushed onto it, or at the end.
        log_weight: log gamma[i -> j][q, x -> r, y], up to one constant for each step.
        probability: the share of the runs, by weight, that leave this symbol on the stack in this way.
    """

    source: StackNode
    target: StackNode
    log_weight: float
    probability: float


@torch.no_grad()
def stack_contents(
    push: Tensor, replace: Tensor, pop: Tensor, *, window: int | None = None, least: float = 0.0
) -> list[list[StackEdge]]:
    """What may lie on the stack after n steps: the edges of a weighted finite automaton.

    The paths from the node (-1, 0, 0) to the nodes of step n are the possible contents, from the bottom to the top, and
    the product of the weights on a path is the weight of all runs that lead there, up to one factor for all paths. For
    what lies on the stack after t steps, pass the log weights of these steps.

    Args:
        push: log weights as for ``nondeterministic_stack``, (B, n, Q, S, Q, S).
        replace: (B, n, Q, S, Q, S).
        pop: (B, n, Q, S, Q).
        window: D for limited memory.
        least: edges are left out if their probability is 0 or less than this.

    Returns:
        The edges of each sequence, the edges of the bottom first; no edges if there is no run.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, a log weight is NaN or inf, or the window
            is not positive.
    """
    check_transitions(push, replace, pop, window)
    check_defined(push=push, replace=replace, pop=pop)
    logits = join_transitions(push, replace, pop).double()
    return [_contents(logits[b : b + 1], push.shape[2], window, least) for b in range(len(logits))]


def _contents(logits: Tensor, num_states: int, window: int | None, least: float) -> list[StackEdge]:
    num_symbols = logits.shape[2] // num_states
    no_vector = logits.new_zeros(1, 1)
    columns = TrackedColumns.initial(no_vector, num_states, num_symbols, window, None)
    gammas, forward = [columns.gamma[0, :, -1]], [*columns.alpha[0]]
    for logits_t in logits.unbind(1):
        _, columns = columns.advance(logits_t, no_vector)
        gammas.append(columns.gamma[0, :, -1])
        forward.append(columns.log_alpha[0])
    log_total = forward[-1].logsumexp(0)
    if not log_total.isfinite():
        return []
    backward = [torch.full_like(x, -torch.inf) for x in forward]  # of column j at [j + 1], like ``forward``
    backward[-1][:] = 0
    edges = []
    for j in reversed(range(len(gammas))):
        first = j - len(gammas[j])  # i of the first row
        for i, gamma in enumerate(gammas[j], first):
            after = gamma + backward[j + 1]
            backward[i + 1] = torch.logaddexp(backward[i + 1], after.logsumexp(1))
            shares = (forward[i + 1][:, None] + after - log_total).exp()
            for x, y in (shares.ge(least) & shares.gt(0)).nonzero().tolist():
                source, target = (StackNode(k, *divmod(c, num_symbols)) for k, c in ((i, x), (j, y)))
                edges.append(StackEdge(source, target, gamma[x, y].item(), shares[x, y].item()))
    return sorted(edges)
