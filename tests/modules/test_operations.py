"""What a supervised nondeterministic stack learns to do."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackOperation,
    best_operations,
    operation_log_probability,
)
from fairseq_stack.modules.operations import allowed_transitions
from fairseq_stack.ops import best_runs

KNOWN = list(StackOperation)[2:]


@pytest.fixture
def stack() -> NondeterministicStackAttention:
    return NondeterministicStackAttention(6, 3, 2, 4).double()


def test_each_transition_is_in_one_set() -> None:
    of_any, replaced = (allowed_transitions(torch.tensor([[each]]), 3) for each in (-1, 0))
    pushed, popped, to_first, to_other = (allowed_transitions(torch.tensor([[each]]), 3) for each in KNOWN)
    for operation in ("push", "replace", "pop"):
        sets = [getattr(each, operation)[0, 0].expand(1, 1, 3, *[1] * (operation != "pop")).int() for each in
                (pushed, popped, to_first, to_other)]  # fmt: skip
        assert sum(sets).eq(1).all()
        assert getattr(of_any, operation).all()
    assert torch.equal(replaced.replace.expand(1, 1, 1, 1, 3, 1), to_first.replace | to_other.replace)
    assert pushed.push.all() and popped.pop.all() and not replaced.push.any() and not replaced.pop.any()
    assert to_first.replace.flatten().tolist() == [True, False, False]


def test_probabilities_of_all_operations_sum_to_one(stack: NondeterministicStackAttention) -> None:
    """Of the first three inputs of four."""
    inputs = torch.randn(1, 4, 6, dtype=torch.float64).mul(3)
    known = torch.tensor([[*each, int(StackOperation.ANY)] for each in product(KNOWN, repeat=3)])
    log_probabilities = operation_log_probability(stack, inputs.expand(len(known), -1, -1), known)[:, 2]
    assert log_probabilities.logsumexp(0).item() == pytest.approx(0, abs=1e-12)
    assert log_probabilities[known[:, 0] == StackOperation.POP].eq(-math.inf).all()  # the bottom is not popped


def test_best_operations(stack: NondeterministicStackAttention) -> None:
    inputs = torch.randn(5, 6, dtype=torch.float64).mul(3)
    anything = torch.full((5,), int(StackOperation.ANY))
    ((run,),) = best_runs(*stack.transitions_of_sequence(stack.actions(inputs[None])))
    best = best_operations(stack, inputs, anything)
    kinds = {StackOperation.PUSH: "push", StackOperation.POP: "pop"}
    assert [kinds.get(each, "replace") for each in best] == [step.operation for step in run.steps]
    known = [StackOperation.REPLACE_TO_OTHER_STATE, *[StackOperation.ANY] * 3, StackOperation.REPLACE_TO_FIRST_STATE]
    best = best_operations(stack, inputs, torch.tensor(known))
    assert (best[0], best[-1]) == (known[0], known[-1])


def test_stacks_that_cannot_be_supervised() -> None:
    arguments = torch.randn(1, 2, 6), torch.tensor([[1, 2]])
    with pytest.raises(ValueError, match="at least two states"):
        operation_log_probability(NondeterministicStackAttention(6, 1, 3, 4), *arguments)
    with pytest.raises(ValueError, match="unlimited memory, got a window of 3"):
        operation_log_probability(NondeterministicStackAttention(6, 2, 3, 4, window=3), *arguments)
