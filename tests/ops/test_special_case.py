"""The superposition stack as the nondeterministic stack with one state, one symbol and v_0 = 0 (Eq. 13).

They differ in one point. A pop of the empty superposition stack, which holds zero vectors all the way down,
uncovers another zero vector; the pushdown automaton has but one bottom symbol, which cannot be popped, so
that the run ends and the other runs share its probability. So the two agree if the actions of each step sum
to 1 and no run of positive weight pops the empty stack; with n zero vectors pushed in advance, no run of n
steps can.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack, superposition_stack
from tests.helpers import INSTRUCTION_SETS, assert_normwise_close, use_backend

NEVER = -200.0  # log weight of what must not happen: e^-200 is nothing beside 1, in float64 too


@pytest.fixture(params=["reference", "pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The backend of both stacks: all, and all instruction sets of the compiled one."""
    return use_backend(request.param, monkeypatch)


def nondeterministic_readings(log_actions: Tensor, values: Tensor, backend: str) -> Tensor:
    """``nondeterministic_stack`` with the arguments of ``superposition_stack``, except for the logarithm."""
    batch_size, length, size = values.shape
    push, replace, pop = log_actions.unbind(2)
    readings = nondeterministic_stack(
        push.view(batch_size, length, 1, 1, 1, 1),
        replace.view(batch_size, length, 1, 1, 1, 1),
        pop.view(batch_size, length, 1, 1, 1),
        values,
        values.new_zeros(size),
        backend=backend,
    )
    assert isinstance(readings, Tensor)
    return readings.view(batch_size, length, size)


@pytest.mark.parametrize("length", [1, 2, 9])
def test_equal_on_zero_vectors_pushed_in_advance(length: int, backend: str) -> None:
    logits = torch.randn(2, length, 3, dtype=torch.float64).mul(2).requires_grad_()
    values = torch.randn(2, length, 4, dtype=torch.float64).requires_grad_()
    cotangent = torch.randn_like(values)
    pushes = torch.tensor([0.0, NEVER, NEVER], dtype=torch.float64).expand(2, length, 3)
    nondeterministic = nondeterministic_readings(
        torch.cat([pushes, logits.log_softmax(2)], dim=1),
        torch.cat([torch.zeros_like(values), values], dim=1),
        backend,
    )[:, length:]
    superposition = superposition_stack(logits.softmax(2), values, backend=backend)
    assert_normwise_close(nondeterministic, superposition, 1e-9)
    for actual, expected in zip(
        torch.autograd.grad((nondeterministic * cotangent).sum(), (logits, values)),
        torch.autograd.grad((superposition * cotangent).sum(), (logits, values)),
        strict=True,
    ):
        assert_normwise_close(actual, expected, 1e-9)


def test_equal_where_no_run_pops_the_empty_stack(backend: str) -> None:
    # Heights at least: 1, 2, 1, 0, then no pop; 1, 2, 2, 1, 0, then no pop.
    only_push, any_action, no_pop = (True, False, False), (True, True, True), (True, True, False)
    only_noop = (False, True, False)
    allowed = torch.tensor(
        [
            [only_push, only_push, any_action, any_action, no_pop, no_pop],
            [only_push, only_push, only_noop, any_action, any_action, no_pop],
        ]
    )
    log_actions = torch.randn(2, 6, 3, dtype=torch.float64).masked_fill(~allowed, NEVER).log_softmax(2)
    values = torch.randn(2, 6, 4, dtype=torch.float64)
    nondeterministic = nondeterministic_readings(log_actions, values, backend)
    assert_normwise_close(nondeterministic, superposition_stack(log_actions.exp(), values, backend=backend), 1e-9)


def test_unequal_where_a_run_pops_the_empty_stack(backend: str) -> None:
    actions = torch.tensor([[[0.5, 0.25, 0.25]]], dtype=torch.float64)
    values = torch.ones(1, 1, 1, dtype=torch.float64)
    assert_normwise_close(superposition_stack(actions, values, backend=backend), torch.tensor([[[0.5]]]), 1e-12)
    nondeterministic = nondeterministic_readings(actions.log(), values, backend)
    assert_normwise_close(nondeterministic, torch.tensor([[[0.5 / 0.75]]], dtype=torch.float64), 1e-12)
