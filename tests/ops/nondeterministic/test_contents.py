"""The stack as a finite automaton, against all runs."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
import torch

from fairseq_stack.ops import stack_contents
from fairseq_stack.ops.nondeterministic import StackNode
from tests.ops.nondeterministic.inputs import random_inputs
from tests.ops.nondeterministic.runs import EnumeratedRun, enumerated_runs


def configurations(run: EnumeratedRun) -> list[StackNode]:
    """The nodes of steps -1, 0, 1, ..., of which those of steps -1 and 0 are the same but for the step."""
    states = [0, *(index[2] for _, index in run.steps)]
    tops = [stack[-1][0] for stack in run.stacks]
    nodes = [StackNode(t, state, symbol) for t, (state, symbol) in enumerate(zip(states, tops, strict=True))]
    return [StackNode(-1, 0, 0), *nodes]


def path(run: EnumeratedRun) -> list[tuple[StackNode, StackNode]]:
    """The edges of the last stack of a run."""
    nodes = configurations(run)
    begins = [pushed for _, pushed in run.stacks[-1]]
    ends = [begin - 1 for begin in begins[1:]] + [len(run.steps)]
    return [(nodes[begin], nodes[end + 1]) for begin, end in zip(begins, ends, strict=True)]


@pytest.mark.parametrize(("length", "num_states", "num_symbols"), [(0, 2, 2), (1, 2, 2), (4, 2, 2), (6, 1, 2)])
@pytest.mark.parametrize(("masked", "window"), [(0.0, None), (0.4, None), (0.0, 2)])
def test_enumeration_of_all_runs(
    length: int, num_states: int, num_symbols: int, masked: float, window: int | None
) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, 1, masked=masked)[:3]
    for b, edges in enumerate(stack_contents(*inputs, window=window)):
        shares: defaultdict[tuple[StackNode, StackNode], float] = defaultdict(float)
        contents: defaultdict[tuple[tuple[StackNode, StackNode], ...], float] = defaultdict(float)
        for run in enumerated_runs([x[b].detach() for x in inputs], window=window):
            contents[tuple(path(run))] += math.exp(run.log_weight)
        total = sum(contents.values())
        for edges_of_content, weight in contents.items():
            for edge in edges_of_content:
                shares[edge] += weight / total
        assert {(edge.source, edge.target): edge.probability for edge in edges} == pytest.approx(dict(shares))
        logs = {(edge.source, edge.target): edge.log_weight for edge in edges}
        ratios = [sum(map(logs.__getitem__, path)) - math.log(weight) for path, weight in contents.items()]
        assert ratios == pytest.approx([ratios[0]] * len(ratios))  # a path has its weight, up to a constant


@pytest.mark.parametrize("undefined", [math.nan, math.inf])
def test_undefined_log_weights(undefined: float) -> None:
    push, replace, pop, *_ = (x.detach() for x in random_inputs(2, 3, 2, 2, 1))
    replace[1, 2, 1, 1, 0, 0] = undefined
    with pytest.raises(ValueError, match=r"^replace: expected log weights that are numbers or -inf, got NaN or inf$"):
        stack_contents(push, replace, pop)


def test_long_and_extreme() -> None:
    """In each step one symbol is on top, and all symbols on the stack are of one of the edges."""
    inputs = random_inputs(1, 30, 2, 3, 1, std=15)[:3]
    (edges,) = stack_contents(*inputs)
    assert sum(edge.probability for edge in edges if edge.target.step == 30) == pytest.approx(1)
    assert sum(edge.probability for edge in edges if edge.source.step == -1) == pytest.approx(1)
    (likely,) = stack_contents(*inputs, least=0.1)
    assert likely == [edge for edge in edges if edge.probability >= 0.1] and likely != edges


def test_no_run() -> None:
    inputs = [torch.full_like(x, -torch.inf) for x in random_inputs(1, 2, 2, 2, 1)[:3]]
    assert stack_contents(*inputs) == [[]]
