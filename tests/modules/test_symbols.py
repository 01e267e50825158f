"""The stack without vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.modules import SymbolStackAttention
from tests.helpers import assert_normwise_close, each_golden_file

SIZE = 6


@each_golden_file("ns_symbols_*.npz")
@pytest.mark.parametrize("normalize_transitions", [False, True], ids=["as-they-are", "normalised-again"])
def test_golden_readings(path: Path, normalize_transitions: bool) -> None:
    """The reading is the distribution over states and symbols, or over symbols alone. The weights sum to 1 already."""
    golden = np.load(path)
    by_top = [torch.from_numpy(golden[name]).flatten(4) for name in ("push", "replace", "pop")]
    actions = torch.cat(by_top, dim=-1).flatten(2)
    sizes = golden["push"].shape[2:4]
    for states_in_reading, name in ((True, "readings_with_states"), (False, "readings_symbols_only")):
        stack = SymbolStackAttention(
            SIZE, *sizes, states_in_reading=states_in_reading, normalize_transitions=normalize_transitions
        ).double()
        readings = stack.readings(actions, stack.activated(actions)).flatten(2)
        assert_normwise_close(readings, golden[name], 1e-9, name)


Configuration = tuple[int, tuple[tuple[int, int], ...]]
"""A state, and the stack: symbols with the step that pushed them. The original bottom is not among them; any other is,
as pushed in step 0.
"""


def successors(
    configuration: Configuration, t: int, push: Tensor, replace: Tensor, pop: Tensor
) -> Iterator[tuple[Configuration, Tensor]]:
    """What step t makes of a configuration, with the log weights of its transitions."""
    q, stack = configuration
    x = stack[-1][0] if stack else 0
    num_states, num_symbols = push.shape[-2:]
    for r, y in product(range(num_states), range(num_symbols)):
        yield (r, (*stack, (y, t))), push[q, x, r, y]
        if stack:
            yield (r, (*stack[:-1], (y, stack[-1][1]))), replace[q, x, r, y]
    if len(stack) > 1:
        for r in range(num_states):
            yield (r, stack[:-1]), pop[q, x, r]


def enumerated(push: Tensor, replace: Tensor, pop: Tensor, window: int, original_bottom: bool = True) -> Tensor:
    """The weights of all runs that end in each state with each symbol on top after each step, (n, Q, S).

    A run dies when what step p pushed is on top after a step t > p + D - 1.
    """
    weights: dict[Configuration, float] = {(0, () if original_bottom else ((0, 0),)): 1.0}
    forward_weights = torch.zeros(push.shape[:3], dtype=push.dtype)
    for t, transitions in enumerate(zip(push, replace, pop, strict=True), 1):
        after: dict[Configuration, float] = defaultdict(float)
        for before, weight in weights.items():
            for configuration, log_weight in successors(before, t, *transitions):
                *_, (_, pushed) = configuration[1]
                if t <= pushed + window - 1:
                    after[configuration] += weight * log_weight.exp().item()
        for (state, stack), weight in after.items():
            forward_weights[t - 1, state, stack[-1][0]] += weight
        weights = after
    return forward_weights


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 5, 6])
def test_the_original_bottom_with_limited_memory_by_enumeration(length: int, window: int) -> None:
    stack = SymbolStackAttention(SIZE, 2, 2, original_bottom=True, window=window).double()
    actions = torch.randn(1, length, stack.actions.out_features, dtype=torch.float64)
    push, replace, pop = stack.transitions(actions)
    expected = enumerated(push[0], replace[0], pop[0], window)
    expected = expected / expected.sum((1, 2), keepdim=True)
    ones = stack.activated(actions)
    readings = stack.readings(actions, ones)
    assert_normwise_close(readings[0, ..., 0], expected, 1e-12)
    state = stack.initial_state(1)
    for t in range(length):
        reading, state = stack.step_reading(actions[:, t], ones[:, t], state)
        assert_normwise_close(reading[0, ..., 0], expected[t], 1e-12)


@pytest.mark.parametrize("states_in_reading", [True, False], ids=["states", "symbols"])
@pytest.mark.parametrize("original_bottom", [True, False])
@pytest.mark.parametrize("window", [1, 2, 3, None])
def test_the_reading_of_log_weights_by_enumeration(
    window: int | None, original_bottom: bool, states_in_reading: bool
) -> None:
    """tanh(log w), which is (w^2 - 1) / (w^2 + 1)."""
    stack = SymbolStackAttention(
        SIZE, 2, 2, read_log_weights=True, states_in_reading=states_in_reading, original_bottom=original_bottom,
        window=window,
    ).double()  # fmt: skip
    actions = torch.randn(1, 5, stack.actions.out_features, dtype=torch.float64)
    push, replace, pop = stack.transitions(actions)
    weights = enumerated(push[0], replace[0], pop[0], window or 99, original_bottom)
    weights = weights if states_in_reading else weights.sum(1)
    expected = (weights.square() - 1) / (weights.square() + 1)
    ones = stack.activated(actions)
    assert_normwise_close(stack.readings(actions, ones)[0], expected, 1e-12)
    state = stack.initial_state(1)
    for t in range(5):
        reading, state = stack.step_reading(actions[:, t], ones[:, t], state)
        assert_normwise_close(reading[0], expected[t], 1e-12)


@pytest.mark.parametrize("original_bottom", [True, False])
def test_the_initial_reading_of_log_weights(original_bottom: bool) -> None:
    """There is one run, of weight 1, in state 0 with symbol 0 on top."""
    options: dict[str, Any] = {"read_log_weights": True, "original_bottom": original_bottom}
    assert SymbolStackAttention(SIZE, 2, 2, **options).initial_reading(1).tolist() == [[0, -1, -1, -1]]
    symbols = SymbolStackAttention(SIZE, 2, 2, states_in_reading=False, **options)
    assert symbols.initial_reading(2).tolist() == [[0, -1]] * 2


def test_the_average_vectors_do_not_depend_on_what_is_read() -> None:
    """They are what inspection looks at."""
    stacks = [SymbolStackAttention(SIZE, 2, 2, read_log_weights=weights) for weights in (True, False)]
    actions, values = torch.randn(2, 4, stacks[0].actions.out_features), torch.randn(2, 4, 3)
    one, other = (stack.averages(actions, values, torch.zeros(3)) for stack in stacks)
    assert torch.equal(one, other)
