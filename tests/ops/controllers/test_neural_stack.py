"""What only neural stacks have: more steps than inputs, and what is compiled; wrong arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from fairseq_stack.ops import loop_is_compiled, neural_stack
from tests.ops.controllers.inputs import SETUPS, gradients_of, names, outputs_of, random_arguments


@pytest.mark.parametrize("name", ["linear", "lstm", "buffer"])
@pytest.mark.usefixtures("compiled")
def test_a_thousand_steps(name: str) -> None:
    arguments = random_arguments(SETUPS[name], 1, 500)
    outputs = outputs_of(SETUPS[name], arguments, 1000)
    assert all(x.isfinite().all() for x in (*outputs, *gradients_of(outputs, arguments)))


@pytest.mark.usefixtures("compiled")
def test_the_operator_is_well_formed() -> None:
    """Its schema, its shapes without data, and its gradients as torch.compile sees them."""
    from fairseq_stack.ops.controllers import native

    setup = SETUPS["lstm"]
    x, weight, bias, *cell = random_arguments(setup)
    recurrent = [y.detach().requires_grad_() for y in native._joined(x, cell, setup)]
    tests = "test_schema", "test_autograd_registration", "test_faketensor"
    torch.library.opcheck(native._neural_stack, (x, weight, bias, *recurrent, (8, 2, 2, 0, 0, 1)), test_utils=tests)


@pytest.mark.usefixtures("compiled")
def test_what_is_compiled() -> None:
    x, weight, *_ = random_arguments(SETUPS["linear"])
    assert loop_is_compiled(x, weight) and loop_is_compiled(x.float(), weight.float())
    assert not loop_is_compiled(x, weight.float())
    assert not loop_is_compiled(x.half(), weight.half())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not loop_is_compiled(x, weight)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"x": torch.zeros(3, 0, 3)}, r"x: expected \(B, n, k\) of float32 or float64 with n > 0, got \(3, 0, 3\)"),
        ({"x": torch.zeros(3, 6, 3).half()}, r"x: expected .* got \(3, 6, 3\) torch.float16"),
        ({"x": torch.zeros(3, 6)}, r"x: expected shape \(B, n, k\), got \(3, 6\)"),
        ({"weight": torch.zeros(9, 4)}, r"weight: expected shape \(R, h\) with R = 9, h = 5, got \(9, 4\)"),
        ({"weight": torch.zeros(5, 5)}, "weight: expected at least 6 rows, got 5"),
        ({"bias": torch.zeros(11)}, r"bias: expected shape \(R\) with R = 10, got \(11,\)"),
        ({"bias": torch.zeros(10).double()}, "bias: expected dtype torch.float32 like x, got torch.float64"),
        ({"weight_ih": torch.zeros(20, 6)}, r"weight_ih: expected shape \(P, 5\) with P = 20, got \(20, 6\)"),
        ({"weight_hh": torch.zeros(15, 5)}, r"weight_hh: expected shape \(20, h\) with h = 5, got \(15, 5\)"),
        ({"bias_hh": torch.zeros(5)}, r"bias_hh: expected shape \(P\) with P = 20, got \(5,\)"),
        ({"cell": []}, "cell: expected the weights of the controller 'lstm', got 0 tensors"),
        ({"setup": replace(SETUPS["lstm"], controller="mlp")}, "controller: expected one of 'linear', .*, got 'mlp'"),
        ({"setup": replace(SETUPS["lstm"], memory="tape")}, "memory: expected one of 'stack', .*, got 'tape'"),
        (
            {"setup": replace(SETUPS["lstm"], pushes_input=True)},
            "vector_size: expected 3 like the input that is pushed, got 2",
        ),
        ({"steps": 5}, "steps: expected at least 6, one for each input, got 5"),
        ({"backend": "fast"}, "neural_stack: backend must be one of 'auto', 'native', 'reference', got 'fast'"),
    ],
)
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    setup = SETUPS["lstm"]
    arguments = dict(zip(names(setup), random_arguments(setup, dtype=torch.float32), strict=True)) | changed
    cell = [arguments.pop(name) for name in names(setup)[3:]]
    with pytest.raises(ValueError, match=f"^{message}"):
        neural_stack(**{"cell": cell, "setup": setup, "steps": 6, **arguments})
