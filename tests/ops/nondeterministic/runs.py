"""All runs of the automaton of a nondeterministic stack, one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from torch import Tensor

Configuration = tuple[int, int]
Stacks = tuple[tuple[tuple[int, int], ...], ...]
Steps = tuple[tuple[str, tuple[int, ...]], ...]


class EnumeratedRun(NamedTuple):
    """A run.

    Attributes:
        log_weight: of all its steps.
        steps: the operation and the index (q, x, r, y), or (q, x, r) for a pop, of each step.
        stacks: the symbols before the first and after each step, each with the step that pushed it.
    """

    log_weight: float
    steps: Steps
    stacks: Stacks


def enumerated_runs(
    transitions: Sequence[Tensor],
    *,
    window: int | None = None,
    prefixes: bool = False,
    starts: Sequence[tuple[Configuration, float]] = (((0, 0), 0.0),),
) -> Iterator[EnumeratedRun]:
    """All runs of one sequence that no log weight of -inf forbids.

    Args:
        transitions: log weights of push, replace and pop, each (n, Q, S, ...).
        window: D: what was pushed in step t - D or before is forgotten after step t.
        prefixes: also the runs of fewer steps.
        starts: the configurations before the first step, each with its log weight.
    """
    length, num_states, num_symbols = transitions[0].shape[:3]
    push, replace, pop = (x.tolist() for x in transitions)

    def extend(log_weight: float, steps: Steps, stacks: Stacks, q: int) -> Iterator[EnumeratedRun]:
        t = len(steps) + 1
        stack = stacks[-1]
        x, since = stack[-1]
        if log_weight == -math.inf or (window is not None and since < t - window):
            return
        if prefixes or t > length:
            yield EnumeratedRun(log_weight, steps, stacks)
        if t > length:
            return
        for r in range(num_states):
            for y in range(num_symbols):
                index = q, x, r, y
                weight = log_weight + push[t - 1][q][x][r][y]
                yield from extend(weight, (*steps, ("push", index)), (*stacks, (*stack, (y, t))), r)
                weight = log_weight + replace[t - 1][q][x][r][y]
                yield from extend(weight, (*steps, ("replace", index)), (*stacks, (*stack[:-1], (y, since))), r)
            if len(stack) > 1:
                weight = log_weight + pop[t - 1][q][x][r]
                yield from extend(weight, (*steps, ("pop", (q, x, r))), (*stacks, stack[:-1]), r)

    for (state, symbol), log_weight in starts:
        yield from extend(log_weight, (), (((symbol, 0),),), state)
