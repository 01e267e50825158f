"""The compiled loop computes what the equations say."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import ControlledAutomaton, ControlledSuperposition, nondeterministic_stack, superposition_stack
from fairseq_stack.ops.recurrent import native
from tests.helpers import assert_normwise_close, threads
from tests.ops.recurrent.inputs import HIDDEN, NAMES, STACKS, gradients_of, outputs_of, random_arguments

EACH = pytest.mark.parametrize("name", STACKS)


def assert_agree(name: str, arguments: list[Tensor], tolerance: float, kept: Tensor | None = None) -> None:
    """Values and gradients of the compiled backend, in the dtype of the arguments, and of the equations in float64."""
    wide = [x.detach().double().requires_grad_() for x in arguments]
    expected = outputs_of(STACKS[name], wide, backend="reference", kept=None if kept is None else kept.double())
    found = outputs_of(STACKS[name], arguments, kept=kept)
    assert found.dtype == arguments[0].dtype
    assert_normwise_close(found, expected, tolerance)
    of_found, of_expected = gradients_of(found, arguments), gradients_of(expected, wide)
    for argument, actual, wanted in zip(NAMES, of_found, of_expected, strict=True):
        assert_normwise_close(actual, wanted, tolerance, argument)


@EACH
@pytest.mark.parametrize(("batch_size", "length"), [(3, 6), (1, 1), (5, 2), (1, 3), (2, 0), (0, 3)])
@pytest.mark.usefixtures("instruction_set")
def test_values_and_gradients_are_those_of_the_equations(name: str, batch_size: int, length: int) -> None:
    assert_agree(name, random_arguments(STACKS[name], batch_size, length), 1e-10)


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_float32(name: str) -> None:
    assert_agree(name, random_arguments(STACKS[name], dtype=torch.float32), 2e-5)


@pytest.mark.parametrize("name", ["hidden", "four"])
@pytest.mark.usefixtures("instruction_set")
def test_long_sequences(name: str) -> None:
    assert_agree(name, random_arguments(STACKS[name], 2, 63), 1e-9)


@pytest.mark.parametrize("hidden_size", [1, 3, 16, 37])
@pytest.mark.usefixtures("instruction_set")
def test_sizes_that_fill_no_vector_and_several(hidden_size: int) -> None:
    assert_agree("four", random_arguments(STACKS["four"], 3, 5, hidden_size), 1e-10)


@pytest.mark.usefixtures("instruction_set")
def test_factors_of_the_candidates() -> None:
    arguments = random_arguments(STACKS["sup"])
    assert_agree("sup", arguments, 1e-10, kept=torch.rand(3, 6, HIDDEN, dtype=torch.float64))


@pytest.mark.usefixtures("compiled")
def test_arguments_that_are_not_contiguous() -> None:
    stacks = STACKS["nd"]
    arguments = random_arguments(stacks)
    expected = outputs_of(stacks, arguments)
    gates, recurrent, driving, *others = arguments
    strided = [gates.transpose(0, 1).contiguous().transpose(0, 1), recurrent.t().contiguous().t(), driving * 1, *others]
    strided[2] = torch.stack([driving, driving], 2)[:, :, 0]
    assert torch.equal(outputs_of(stacks, strided), expected)


@pytest.mark.usefixtures("compiled")
def test_a_stack_reads_what_the_op_of_whole_sequences_reads() -> None:
    """The LSTM is the one of the readings of its stacks, which its hidden states drive."""
    nd, sup = ControlledAutomaton(2, 3, 4), ControlledSuperposition(3)
    arguments = random_arguments([nd, sup], 2, 9)
    outputs = outputs_of([nd, sup], arguments)
    gates, recurrent, driving, bias, reading, bottoms = arguments
    transitions, values, actions, vectors = (outputs @ driving.t() + bias).split([nd.num_actions, 4, 3, 3], 2)
    push, replace, pop = transitions.unflatten(2, (2, 3, -1)).split([6, 6, 2], 4)
    push, replace = push.unflatten(4, (2, 3)), replace.unflatten(4, (2, 3))
    read = nondeterministic_stack(push, replace, pop, values.sigmoid(), bottoms).flatten(2)
    readings = torch.cat([read, superposition_stack(actions.softmax(2), vectors.sigmoid())], 2)
    before = torch.cat([reading.expand(2, 1, -1), readings[:, :-1]], 1)
    again = outputs_of([], [gates + before @ recurrent[:, :-HIDDEN].t(), recurrent[:, -HIDDEN:], *_nothing()])
    assert_normwise_close(again, outputs, 1e-12)


def _nothing() -> list[Tensor]:
    return random_arguments([])[2:]


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

    def wide(self, arguments: list[Tensor]) -> list[bool]:
        numbers = [number for stack in self.STACKS for number in native._numbers(stack)]
        with torch.no_grad():
            *_, wide, _ = native._stack_lstm(*arguments, None, numbers)
        taken: list[bool] = wide.tolist()
        return taken

    @pytest.mark.usefixtures("instruction_set")
    def test_it_is_taken_and_agrees(self) -> None:
        arguments = self.arguments(100.0)
        assert self.wide(arguments) == [i in self.FAR for i in range(6)]
        wide = [x.detach().double().requires_grad_() for x in arguments]
        found, expected = outputs_of(self.STACKS, arguments), outputs_of(self.STACKS, wide, backend="reference")
        assert_normwise_close(found, expected, 1e-6)
        of_found, of_expected = gradients_of(found, arguments), gradients_of(expected, wide)
        for name, actual, wanted in zip(NAMES, of_found, of_expected, strict=True):
            assert_normwise_close(actual, wanted, 1e-4, name)

    @pytest.mark.usefixtures("instruction_set")
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_where_it_is_not_enough(self, dtype: torch.dtype) -> None:
        arguments = [x.detach().to(dtype).requires_grad_() for x in self.arguments(3000.0)]
        with torch.no_grad():
            *_, inexact = native._stack_lstm(
                *arguments, None, [number for stack in self.STACKS for number in native._numbers(stack)]
            )
        assert inexact.tolist() == [i in self.FAR for i in range(6)]
        wide = [x.detach().double().requires_grad_() for x in arguments]
        found, expected = outputs_of(self.STACKS, arguments), outputs_of(self.STACKS, wide, backend="reference")
        assert_normwise_close(found, expected, 1e-6)
        of_found, of_expected = gradients_of(found, arguments), gradients_of(expected, wide)
        for name, actual, wanted in zip(NAMES, of_found, of_expected, strict=True):
            assert_normwise_close(actual, wanted, 1e-4 if dtype == torch.float32 else 1e-9, name)

    @pytest.mark.usefixtures("compiled")
    @pytest.mark.parametrize("far", [1.0, 3000.0])
    def test_a_compiled_graph_computes_the_same(self, far: float) -> None:
        compiled = torch.compile(outputs_of, fullgraph=True, backend="aot_eager")
        arguments = self.arguments(far)
        for kept in (None, torch.rand(6, 3, 5)):
            found, expected = (compute(self.STACKS, arguments, kept=kept) for compute in (compiled, outputs_of))
            assert torch.equal(found, expected)
            assert found.isfinite().all()
            for one, other in zip(gradients_of(found, arguments), gradients_of(expected, arguments), strict=True):
                assert torch.equal(one, other)

    @pytest.mark.usefixtures("compiled")
    def test_several_advance_together(self) -> None:
        stacks = torch.tensor([native._numbers(stack) for stack in self.STACKS])
        assert native._together(6, 3, stacks, sum(x.numel() for x in self.arguments(1.0)[1:3])) > 3

    @pytest.mark.usefixtures("instruction_set")
    def test_ordinary_weights_do_not_need_it(self) -> None:
        assert not any(self.wide(self.arguments(1.0)))

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


@EACH
@pytest.mark.usefixtures("instruction_set")
def test_a_sequence_does_not_depend_on_the_others(name: str) -> None:
    """To the bit, whatever the batch is, and with any number of threads."""
    arguments = random_arguments(STACKS[name], 19, 4, dtype=torch.float32)
    outputs = outputs_of(STACKS[name], arguments)
    (of_gates,) = torch.autograd.grad(outputs.square().sum(), arguments[:1])
    gates, *others = arguments
    for some in (slice(0, 1), slice(2, 5), slice(1, 19)):
        own = gates[some].detach().requires_grad_()
        found = outputs_of(STACKS[name], [own, *others])
        assert torch.equal(found, outputs[some])
        assert torch.equal(torch.autograd.grad(found.square().sum(), own)[0], of_gates[some])
    with threads(2):
        again = outputs_of(STACKS[name], arguments)
        assert torch.equal(again, outputs)
        assert torch.equal(torch.autograd.grad(again.square().sum(), arguments[:1])[0], of_gates)


@EACH
@pytest.mark.parametrize("value", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.usefixtures("instruction_set")
def test_numbers_that_are_not_finite_stay_out_of_earlier_steps_and_other_sequences(name: str, value: float) -> None:
    arguments = random_arguments(STACKS[name])
    expected = outputs_of(STACKS[name], arguments, backend="reference")
    with torch.no_grad():
        arguments[0][1, 3, 0] = value
    found, wanted = (outputs_of(STACKS[name], arguments, backend=backend) for backend in ("native", "reference"))
    untouched = torch.ones(3, 6, dtype=torch.bool)
    untouched[1, 3:] = False
    assert_normwise_close(found[untouched], expected[untouched], 1e-12)
    assert torch.equal(found.isnan(), wanted.isnan())
    assert_normwise_close(found.nan_to_num(), wanted.nan_to_num(), 1e-10)
    (of_gates,) = torch.autograd.grad(found[untouched].square().sum(), arguments[:1])
    assert of_gates[[0, 2]].isfinite().all()
