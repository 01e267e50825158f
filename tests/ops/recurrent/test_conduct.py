"""What ``stack_lstm`` does with arguments and derivatives, whatever it computes."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import jvp

from fairseq_stack.ops import stack_lstm
from tests.helpers import assert_refuses_forward_mode
from tests.ops.recurrent.inputs import NAMES, STACKS, outputs_of, random_arguments, weighted_sum

EACH = pytest.mark.parametrize("name", STACKS)


@EACH
@pytest.mark.usefixtures("compiled")
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    arguments = random_arguments(STACKS[name], 2, 4)
    kept = torch.rand(2, 4, 5, dtype=torch.float64)

    def outputs(*arguments: Tensor) -> Tensor:
        return outputs_of(STACKS[name], arguments, kept=kept)

    assert torch.autograd.gradcheck(outputs, arguments, fast_mode=True, check_undefined_grad=False)


@pytest.mark.usefixtures("compiled")
def test_the_operator_is_well_formed() -> None:
    """Its schema, its shapes without data, and its gradients as torch.compile sees them."""
    from fairseq_stack.ops.recurrent import native

    numbers = [number for stack in STACKS["four"] for number in native._numbers(stack)]
    tests = "test_schema", "test_autograd_registration", "test_faketensor"
    torch.library.opcheck(native._stack_lstm, (*random_arguments(STACKS["four"]), None, numbers), test_utils=tests)


@pytest.mark.usefixtures("compiled")
def test_only_the_reference_has_second_derivatives() -> None:
    arguments = random_arguments(STACKS["four"], 1, 3)

    def first_derivative(backend: str) -> Tensor:
        loss = weighted_sum(outputs_of(STACKS["four"], arguments, backend=backend))
        return torch.autograd.grad(loss, arguments[:1], create_graph=True)[0]

    assert torch.autograd.grad(first_derivative("reference").square().sum(), arguments[1])[0].isfinite().all()
    with pytest.raises(RuntimeError, match="stack_lstm: only backend='reference' has second derivatives"):
        torch.autograd.grad(first_derivative("native").square().sum(), arguments[1])


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", NAMES)
def test_only_the_reference_has_forward_mode_derivatives(name: str) -> None:
    arguments = dict(zip(NAMES, (x.detach() for x in random_arguments(STACKS["four"], 2, 3)), strict=True))
    x = arguments.pop(name)

    def outputs(x: Tensor, backend: str) -> Tensor:
        return stack_lstm(**arguments, **{name: x}, stacks=STACKS["four"], backend=backend)

    assert jvp(lambda x: outputs(x, "reference"), (x,), (x,))[1].abs().max() > 1e-9
    for backend in ("auto", "native"):
        assert_refuses_forward_mode(partial(outputs, backend=backend), x, "stack_lstm")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gates": torch.zeros(3, 6, 21)}, r"gates: expected \(B, n, 4 H\) of float32 or float64, got \(3, 6, 21\)"),
        ({"gates": torch.zeros(3, 6, 20).half()}, r"gates: expected .* got \(3, 6, 20\) torch.float16"),
        ({"recurrent": torch.zeros(20, 5)}, r"recurrent: expected shape \(G, 9\) with G = 20, got \(20, 5\)"),
        ({"driving": torch.zeros(7, 4)}, r"driving: expected shape \(7, 5\), got \(7, 4\)"),
        ({"bias": torch.zeros(8)}, r"bias: expected shape \(7\), got \(8,\)"),
        ({"bias": torch.zeros(7).double()}, "bias: expected dtype torch.float32 like gates, got torch.float64"),
        ({"reading": torch.zeros(5)}, r"reading: expected shape \(4\), got \(5,\)"),
        ({"bottoms": torch.zeros(1)}, r"bottoms: expected shape \(0\), got \(1,\)"),
        ({"kept": torch.zeros(3, 5, 5)}, r"kept: expected shape \(B, n, 5\) with B = 3, n = 6, got \(3, 5, 5\)"),
        ({"backend": "fast"}, "stack_lstm: backend must be one of 'auto', 'native', 'reference', got 'fast'"),
    ],
)
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    arguments = dict(zip(NAMES, random_arguments(STACKS["sup"], dtype=torch.float32), strict=True))
    with pytest.raises(ValueError, match=f"^{message}"):
        stack_lstm(**{"stacks": STACKS["sup"], **arguments, **changed})
