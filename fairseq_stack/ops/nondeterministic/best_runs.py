"""The best runs of the automaton of a nondeterministic stack (Viterbi): Section 11 of ``docs/algorithm.md``."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .._arguments import check_sizes
from ._derivations import Derivations, Part
from ._excursions import best_parts
from ._log_weights import check_defined, check_transitions, first_configuration
from .runs import Run


def best_runs(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    *,
    count: int = 1,
    lengths: Sequence[int] | None = None,
    start: Tensor | None = None,
) -> list[list[Run]]:
    """The runs with the largest weights, all different, the best run first.

    The weight of a run is the product of the weights of its transitions. The result is exact: no run is left out
    because it looks unlikely after some of its steps. Runs of equal weight are in an arbitrary but fixed order, and of
    several such runs any may be the last one that is returned. It takes O(Q^3 S n^3) time and O(Q^2 S n^2) memory for
    each sequence.

    The best runs of the steps i + 1..j of a sequence are the best runs of the log weights ``[:, i:j]``; ``start`` says
    in which configurations they may begin.

    Args:
        push: log Delta_t[q, x -> r, xy] at index [b, t - 1, q, x, r, y], (B, n, Q, S, Q, S), as for
            ``nondeterministic_stack``.
        replace: log Delta_t[q, x -> r, y], (B, n, Q, S, Q, S).
        pop: log Delta_t[q, x -> r, eps] at index [b, t - 1, q, x, r], (B, n, Q, S, Q).
        count: how many runs to return for each sequence, if it has so many.
        lengths: the number of steps of each sequence, for padded batches and for prefixes; None for n.
        start: log weights of the state and the symbol that runs begin with, (B, Q, S); None for state 0 and symbol 0.
            The first symbol cannot be popped.

    Returns:
        The runs of each sequence whose weight is not 0. There may be fewer than ``count``, or none.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, a log weight is NaN or inf, ``count`` is
            less than 1, or the lengths are not B numbers between 0 and n.
    """
    sizes = check_transitions(push, replace, pop, None)
    batch_size, length = sizes["B"], sizes["n"]
    if start is None:
        start = first_configuration((batch_size, sizes["Q"] * sizes["S"]), push).unflatten(1, push.shape[2:4])
    sizes.check("start", start, "B Q S")
    lengths = [length] * batch_size if lengths is None else list(lengths)
    if len(lengths) != batch_size or not all(0 <= steps <= length for steps in lengths):
        raise ValueError(f"lengths: expected {batch_size} numbers from 0 to {length}, got {lengths}")
    check_sizes(count=count)
    check_defined(push=push, replace=replace, pop=pop, start=start)
    all_parts = best_parts(*(x.detach() for x in (start, push, replace, pop)))
    return [_best_first(Derivations(parts, count), steps) for parts, steps in zip(all_parts, lengths, strict=True)]


def _best_first(derivations: Derivations, length: int) -> list[Run]:
    """The best runs of a sequence.

    A run that is partly known is the parts of it that are not, of each of which the best is assumed, and the steps that
    are. Its weight is that of a run, so the queue yields complete runs in the order of their weights.
    """
    runs: list[Run] = []
    # Lists are pairs of the first element and the rest. Of equal weights the latest comes first, and completes a run.
    queue: list[tuple[float, int, Any, Any]] = [(0.0, 0, (Part("end", (length,)), None), None)]
    numbers = itertools.count(-1, -1)
    while queue and len(runs) < derivations.count:
        loss, _, unknown, taken = heapq.heappop(queue)
        if unknown is None:
            runs.append(derivations.run(_elements(taken)))
            continue
        part, others = unknown
        choices = derivations.choices(part)
        for choice in reversed(choices):
            after = others
            for inner in choice.parts:
                after = inner, after
            known = taken if choice.taken is None else (choice.taken, taken)
            heapq.heappush(queue, (loss + choices[0].weight - choice.weight, next(numbers), after, known))
    return sorted(runs, key=lambda run: -run.log_weight)


def _elements(chain: Any) -> list[Any]:
    elements = []
    while chain is not None:
        first, chain = chain
        elements.append(first)
    return elements
