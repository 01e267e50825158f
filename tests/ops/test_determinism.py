"""The same bits each time, whatever the number of threads, with each instruction set."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState, nondeterministic_stack, superposition_stack
from fairseq_stack.ops._native import availability
from tests.conftest import REPOSITORY
from tests.helpers import INSTRUCTION_SETS, threads, use_instruction_set


def inputs(dtype: torch.dtype) -> list[Tensor]:
    """Sizes that are not multiples of a vector's, and five sequences, which threads finish in any order."""
    torch.manual_seed(0)
    logits = [torch.randn(5, 11, 2, 3, *target, dtype=dtype) * 3 for target in ((2, 3), (2, 3), (2,))]
    logits[1][1] *= 10  # one that takes float64
    values, bottom = torch.randn(5, 11, 7, dtype=dtype), torch.randn(7, dtype=dtype)
    actions = torch.randn(5, 11, 3, dtype=dtype).softmax(2)
    return [x.requires_grad_() for x in (*logits, values, bottom, actions)]


def results(leaves: list[Tensor]) -> list[Tensor]:
    push, replace, pop, values, bottom, actions = leaves
    readings, weights = nondeterministic_stack(
        push, replace, pop, values, bottom, backend="native", return_weights=True
    )
    others = superposition_stack(actions, values, backend="native")
    loss = readings.square().sum() + weights.square().sum() + others.square().sum()
    results = [readings, weights, others, *torch.autograd.grad(loss, leaves)]
    with torch.no_grad():
        state = NondeterministicStackState.initial(bottom, batch_size=5, num_states=2, num_symbols=3)
        for t in range(3):
            reading, state = state.step(*(x[:, t] for x in (push, replace, pop, values)))
            state = state.reorder(torch.tensor([4, 0, 0, 3, 2]))
            results.append(reading)
    return results


def check(repeats: int) -> None:
    for dtype in (torch.float32, torch.float64):
        leaves = inputs(dtype)
        with threads(1):
            expected = results(leaves)
        for repeat in range(repeats):
            count = repeat % 4 + 1
            with threads(count):
                for i, (one, other) in enumerate(zip(results(leaves), expected, strict=True)):
                    assert torch.equal(one, other), f"{dtype}, repeat {repeat}, {count} threads, result {i}"


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_repeats_are_equal_to_the_last_bit(instruction_set: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_instruction_set(instruction_set, monkeypatch)
    check(20)


@pytest.mark.hostile
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_a_thousand_repeats_are_equal_to_the_last_bit(instruction_set: str) -> None:
    """In a process of its own, as a user chooses the instruction set."""
    compiled, reason = availability()
    if compiled is None or instruction_set not in compiled.instruction_sets:
        pytest.skip(f"no {instruction_set}: {reason}")
    program = (
        "from tests.ops import test_determinism as test\n"
        f"assert test.availability().library.instruction_set == {instruction_set!r}\n"
        "test.check(1000)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=REPOSITORY,
        env=os.environ | {"FAIRSEQ_STACK_INSTRUCTION_SET": instruction_set},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
