"""What only LSTMs with stacks have: candidates' factors, and sequences that need float64; wrong arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import ControlledAutomaton, ControlledSuperposition, stack_lstm
from fairseq_stack.ops.recurrent import native
from tests.helpers import assert_agree, assert_normwise_close
from tests.ops.controllers.inputs import gradients_of
from tests.ops.recurrent.inputs import HIDDEN, NAMES, STACKS, outputs_of, random_arguments


@pytest.mark.usefixtures("instruction_set")
def test_factors_of_the_candidates() -> None:
    arguments, kept = random_arguments(STACKS["sup"]), torch.rand(3, 6, HIDDEN, dtype=torch.float64)
    actual, expected = (outputs_of(STACKS["sup"], arguments, backend=x, kept=kept) for x in ("native", "reference"))
    assert_agree(actual, expected, arguments, 1e-10, names=NAMES)


class TestFloat64WhereFloat32IsNotEnough:
    """As in the op of whole sequences, for each sequence on its own, although several advance together."""

    STACKS = (ControlledAutomaton(2, 2, 2),)

    FAR = (1, 2, 4)

    def arguments(self, far: float) -> list[Tensor]:
        """In some sequences, whose hidden states are not almost 0, log weights are far apart."""
        gates, recurrent, driving, bias, *others = random_arguments(self.STACKS, 6, 3)
        with torch.no_grad():
            gates[[i for i in range(6) if i not in self.FAR]] -= 20
            driving[: self.STACKS[0].num_actions] *= far
        return [x.detach().float().requires_grad_() for x in (gates, recurrent, driving, bias, *others)]

    def flags(self, arguments: list[Tensor]) -> tuple[list[bool], list[bool]]:
        """For which sequences float64 is taken, and where it is not enough."""
        numbers = [number for stack in self.STACKS for number in native._numbers(stack)]
        with torch.no_grad():
            *_, wide, inexact = native._stack_lstm(*arguments, None, numbers)
        return wide.tolist(), inexact.tolist()

    @pytest.mark.usefixtures("instruction_set")
    @pytest.mark.parametrize(
        ("far", "dtype", "tolerance"),
        [(100.0, torch.float32, 1e-4), (3000.0, torch.float32, 1e-4), (3000.0, torch.float64, 1e-9)],
    )
    def test_it_is_taken_and_agrees(self, far: float, dtype: torch.dtype, tolerance: float) -> None:
        """Or logarithms are, where log weights are farther apart."""
        arguments = [x.detach().to(dtype).requires_grad_() for x in self.arguments(far)]
        assert self.flags(arguments)[far > 100] == [i in self.FAR for i in range(6)]
        wide = [x.detach().double().requires_grad_() for x in arguments]
        actual, expected = outputs_of(self.STACKS, arguments), outputs_of(self.STACKS, wide, backend="reference")
        assert_agree(actual, expected, arguments, 1e-6, tolerance, wide=wide, names=NAMES)

    @pytest.mark.usefixtures("compiled")
    @pytest.mark.parametrize("far", [1.0, 3000.0])
    def test_a_compiled_graph_computes_the_same(self, far: float) -> None:
        compiled = torch.compile(outputs_of, fullgraph=True, backend="aot_eager")
        arguments = self.arguments(far)
        for kept in (None, torch.rand(6, 3, 5)):
            actual, expected = (compute(self.STACKS, arguments, kept=kept) for compute in (compiled, outputs_of))
            assert torch.equal(actual, expected)
            assert actual.isfinite().all()
            assert all(map(torch.equal, gradients_of([actual], arguments), gradients_of([expected], arguments)))

    @pytest.mark.usefixtures("compiled")
    def test_several_advance_together(self) -> None:
        stacks = torch.tensor([native._numbers(stack) for stack in self.STACKS])
        assert native._together(6, 3, stacks, sum(x.numel() for x in self.arguments(1.0)[1:3])) > 3

    @pytest.mark.usefixtures("instruction_set")
    def test_ordinary_weights_do_not_need_it(self) -> None:
        assert not any(self.flags(self.arguments(1.0))[0])

    @pytest.mark.usefixtures("instruction_set")
    def test_forbidden_pushes_of_the_first_step_need_it(self) -> None:
        stack = ControlledAutomaton(2, 2, 1, "ones", original_bottom=True)
        arguments = random_arguments([stack], dtype=torch.float32)
        with torch.no_grad():
            arguments[3][1] = -torch.inf
            *_, wide, _ = native._stack_lstm(*arguments, None, list(native._numbers(stack)))
        assert wide.all()
        expected = outputs_of([stack], [x.double() for x in arguments], backend="reference")
        assert_normwise_close(outputs_of([stack], arguments), expected, 1e-6)


@pytest.mark.usefixtures("compiled")
def test_the_operator_is_well_formed() -> None:
    """Its schema, its shapes without data, and its gradients as torch.compile sees them."""
    from fairseq_stack.ops.recurrent import native

    numbers = [number for stack in STACKS["four"] for number in native._numbers(stack)]
    tests = "test_schema", "test_autograd_registration", "test_faketensor"
    torch.library.opcheck(native._stack_lstm, (*random_arguments(STACKS["four"]), None, numbers), test_utils=tests)


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
        (
            {"stacks": [ControlledSuperposition(4, "hidden")]},
            "stacks: a stack that pushes h_t .* size 5 of h_t, got 4",
        ),
        ({"backend": "fast"}, "stack_lstm: backend must be one of 'auto', 'native', 'reference', got 'fast'"),
    ],
)
def test_wrong_arguments(changed: dict[str, Any], message: str) -> None:
    arguments = dict(zip(NAMES, random_arguments(STACKS["sup"], dtype=torch.float32), strict=True))
    with pytest.raises(ValueError, match=f"^{message}"):
        stack_lstm(**{"stacks": STACKS["sup"], **arguments, **changed})


def test_wrong_stacks() -> None:
    ones: Any = "ones"
    for make, message in (
        (lambda: ControlledSuperposition(4, depth_limit=0), "depth_limit: expected at least 1, got 0"),
        (lambda: ControlledSuperposition(4, ones), "pushes: expected one of sigmoid, identity, hidden, got 'ones'"),
        (lambda: ControlledAutomaton(2, 3, 4, window=0), "window: expected at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=f"^{message}$"):
            make()
