"""The compiled kernels read and write nothing beyond their arrays, and write all of what they return."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack
from tests.helpers import threads
from tests.ops.controllers.inputs import SETUPS
from tests.ops.controllers.inputs import outputs_of as neural_stack_of
from tests.ops.controllers.inputs import random_arguments as neural_arguments
from tests.ops.guarded_memory import GuardedCalls
from tests.ops.nondeterministic.inputs import random_inputs
from tests.ops.recurrent.inputs import STACKS as RECURRENT
from tests.ops.recurrent.inputs import outputs_of as lstm_of
from tests.ops.recurrent.inputs import random_arguments as lstm_arguments
from tests.ops.stacks import NATIVE, STACKS, STEPS, Way

DTYPES = (torch.float32, torch.float64)
KERNELS = [
    (name, way)
    for name in (
        "superposition",
        "superposition-limited",
        "stratification",
        "nondeterministic",
        "nondeterministic-window",
    )
    for way in (*NATIVE, *STEPS[1:])
    if way in STACKS[name].ways
]
# n, Q, S of the automaton: around tiles and vectors.
AUTOMATA = [(1, 1, 1), (7, 2, 3), (17, 3, 3), (33, 1, 2), (16, 3, 1)]


def results(compute: Callable[..., Any], inputs: list[Tensor]) -> list[Tensor]:
    """All outputs and gradients."""
    outputs = compute(*inputs)
    outputs = [outputs] if isinstance(outputs, Tensor) else [*outputs]
    generator = torch.Generator().manual_seed(1)
    loss = sum((x * torch.randn(x.shape, generator=generator).to(x.dtype)).sum() for x in outputs)
    return [*outputs, *torch.autograd.grad([loss], inputs, materialize_grads=True)]


def check(compute: Callable[..., Any], inputs: list[Tensor], count: int = 1) -> set[str]:
    """The same bits between margins, and no NaN; the kernels that are called."""
    expected = results(compute, inputs)
    with pytest.MonkeyPatch.context() as patch:
        calls = GuardedCalls(patch)
        for one, other in zip(results(compute, inputs), expected, strict=True):
            assert torch.equal(one, other)
            assert not one.isnan().any()
    assert len(calls.made) >= count
    return set(calls.made)


@pytest.mark.parametrize("way", KERNELS, indirect=True, ids="-".join)
def test_stacks(way: Way) -> None:
    lengths = ((1, 1), (9, 17)) if way.steps else ((1, 1), (3, 5), (17, 7), (33, 65), (131, 3))
    for dtype in DTYPES:
        for length, size in lengths:
            if length < 30 or "bottom" not in way.stack.names:
                inputs = way.stack.random_inputs(2, length, size, dtype=dtype)
                made = check(lambda *x: way.read(x), inputs, 2 * length if way.steps else 2)
                assert len(made) == 2, "both passes"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.usefixtures("instruction_set")
def test_automata(dtype: torch.dtype) -> None:
    """With forbidden transitions, with threads that share each sequence, and with windows."""
    for length, *sizes in AUTOMATA:
        inputs = random_inputs(2, length, *sizes, dtype=dtype)
        with torch.no_grad():
            for x in inputs[:3]:
                x[::2].masked_fill_(torch.rand(x[::2].shape) < 0.3, -torch.inf)
        for count in (1, 4):
            with threads(count):
                check(lambda *x: nondeterministic_stack(*x, backend="native", return_weights=True), inputs, 2)
        for window in (1, 30):
            check(lambda *x, w=window: nondeterministic_stack(*x, backend="native", window=w), inputs, 2)


@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.usefixtures("instruction_set")
def test_steps_of_automata_that_branch(window: int | None) -> None:
    """Beams branch and end on the way."""
    rows = [torch.randint(3, (3,)) for _ in range(18)]
    for length, *sizes in ((18, 1, 1), (10, 2, 3), (5, 3, 3)):

        def readings(*inputs: Tensor, sizes: list[int] = sizes) -> list[Tensor]:
            state = NondeterministicStackState.initial(
                inputs[4], batch_size=3, num_states=sizes[0], num_symbols=sizes[1], window=window, start=inputs[5]
            )
            results = []
            for t in range(inputs[0].size(1)):
                reading, state = state.step(*(x[:, t] for x in inputs[:4]))
                results.append(reading)
                state = state.reorder(rows[t]) if t % 3 == 1 else state
            return results

        inputs = random_inputs(3, length, *sizes)
        start = torch.randn(3, *sizes, dtype=torch.float64, requires_grad=True)
        assert check(readings, [*inputs, start], 2 * length + 2) == {"fss_nd_step", "fss_nd_step_backward"}
        with torch.no_grad():
            expected = readings(*inputs, start)
            with pytest.MonkeyPatch.context() as patch:
                GuardedCalls(patch)
                assert all(map(torch.equal, readings(*inputs, start), expected))


@pytest.mark.parametrize("name", RECURRENT)
@pytest.mark.usefixtures("instruction_set")
def test_recurrent_networks(name: str) -> None:
    for dtype in DTYPES:
        check(lambda *x: lstm_of(RECURRENT[name], x), lstm_arguments(RECURRENT[name], 3, 5, dtype=dtype), 2)


@pytest.mark.parametrize("name", SETUPS)
@pytest.mark.usefixtures("instruction_set")
def test_neural_stacks(name: str) -> None:
    for dtype in DTYPES:
        check(lambda *x: neural_stack_of(SETUPS[name], x, 7), neural_arguments(SETUPS[name], 2, 5, dtype=dtype), 2)
