"""All steps of an LSTM with stacks as one compiled operation, beside its steps one by one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackAttention,
    StackLSTM,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from fairseq_stack.ops._native import library
from tests.helpers import assert_agree, assert_normwise_close
from tests.modules.lstms import CONTROLLER, HIDDEN, INPUT, STACKS, build, counted, random_inputs

OPTIONS: dict[str, list[StackAttention]] = {
    "released": [
        SuperpositionStackAttention(HIDDEN, 3, "released", depth_limit=2, **CONTROLLER),
        NondeterministicStackAttention(HIDDEN, 2, 2, 2, "released", bottom_vector="one", **CONTROLLER),
    ],
    "normalized": [NondeterministicStackAttention(HIDDEN, 3, 2, 1, normalize_transitions=True, **CONTROLLER)],
    "2020": [
        SymbolStackAttention(
            HIDDEN, 2, 2, states_in_reading=False, original_bottom=True, normalize_transitions=True, **CONTROLLER
        )
    ],
}
STEPPED = ("log-weights", "limited-log-weights", "initial-state", "layers", "layers-none", "rnn", "rnn-layers")
EACH = pytest.mark.parametrize("name", [name for name in (*STACKS, *OPTIONS) if name not in STEPPED])


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps that are taken one by one."""
    return counted(StackLSTM, "_advance", monkeypatch)


def make(name: str) -> StackLSTM:
    return StackLSTM(INPUT, HIDDEN, OPTIONS[name]).double() if name in OPTIONS else build(name)


@EACH
@pytest.mark.parametrize(("batch_size", "length"), [(3, 6), (1, 1), (2, 2)])
def test_values_and_gradients_are_those_of_the_steps(name: str, batch_size: int, length: int, steps: list[int]) -> None:
    lstm, inputs = make(name), random_inputs(batch_size, length).requires_grad_()
    actual, _ = lstm(inputs, return_state=False)
    assert not steps
    expected, _ = lstm(inputs, lstm.initial_state(batch_size))
    assert len(steps) == length
    assert_agree(actual, expected, [inputs, *lstm.parameters()], 1e-10)


@EACH
@pytest.mark.parametrize(("length", "recurrent_dropout"), [(0, 0), (1, 0), (6, 0), (6, 0.4)])
def test_the_state_after_them_is_that_of_the_steps(
    name: str, length: int, recurrent_dropout: float, steps: list[int]
) -> None:
    lstm, inputs = make(name), random_inputs(length=length + 3).requires_grad_()
    lstm.train(recurrent_dropout == 0).recurrent_dropout = recurrent_dropout
    expected, _ = lstm(inputs, lstm.initial_state(3))
    assert len(steps) == length + 3
    _, state = lstm(inputs[:, :length])
    assert len(steps) == length + 3, "none of the first steps is taken again"
    actual, _ = lstm(inputs[:, length:], state)
    assert_agree(actual, expected[:, length:], [inputs, *lstm.parameters()], 1e-10)


def test_they_and_the_state_are_one_graph() -> None:
    lstm, inputs = build("nd"), random_inputs()
    outputs, state = torch.compile(lstm, fullgraph=True, backend="aot_eager")(inputs)
    expected, expected_state = lstm(inputs)
    assert_normwise_close(outputs, expected, 1e-12)
    assert_normwise_close(state.readings[0], expected_state.readings[0], 1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_recurrent_dropout_draws_the_numbers_that_the_steps_draw(training: bool, steps: list[int]) -> None:
    lstm, inputs = build("sup", recurrent_dropout=0.4).train(training), random_inputs()
    torch.manual_seed(5)
    actual, _ = lstm(inputs, return_state=False)
    drawn = torch.rand(1)
    assert not steps
    torch.manual_seed(5)
    assert_normwise_close(actual, lstm(inputs, lstm.initial_state(3))[0], 1e-12)
    assert torch.equal(drawn, torch.rand(1))


@pytest.mark.parametrize("name", ["nd", "reading-in-output", "rnn-layers"])
def test_no_steps_at_all(name: str, steps: list[int]) -> None:
    lstm = build(name)
    outputs, state = lstm(random_inputs(length=0), return_state=False)
    assert outputs.shape == (3, 0, lstm.output_size)
    assert state is None and not steps


class TestStepsOneByOne:
    """Where the compiled operation cannot run, the steps are taken as ever."""

    def assert_stepped(self, lstm: StackLSTM, inputs: Tensor, steps: list[int], **options: Any) -> None:
        outputs, state = lstm(inputs, return_state=False, **options)
        assert len(steps) == inputs.size(1)
        assert state is None
        assert torch.equal(outputs, lstm(inputs, **options)[0])

    @pytest.mark.parametrize("name", STEPPED)
    def test_with_a_network_that_is_not_compiled(self, name: str, steps: list[int]) -> None:
        self.assert_stepped(build(name), random_inputs(), steps)

    def test_with_a_subclass_which_may_be_another_stack(self, steps: list[int]) -> None:
        class Other(SuperpositionStackAttention):
            def activated(self, values: Tensor) -> Tensor:
                return values.tanh()

        self.assert_stepped(StackLSTM(INPUT, HIDDEN, [Other(HIDDEN, 3, **CONTROLLER)]).double(), random_inputs(), steps)

    def test_from_a_state(self, steps: list[int]) -> None:
        lstm = build("sup")
        self.assert_stepped(lstm, random_inputs(), steps, state=lstm.initial_state(3))

    def test_with_weights_that_do_not_fit_the_caches(self, steps: list[int]) -> None:
        self.assert_stepped(StackLSTM(INPUT, 512), random_inputs(2, 3).float(), steps)

    def test_without_kernels(self, steps: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        lstm, inputs = build("sup"), random_inputs()
        expected, _ = lstm(inputs, return_state=False)
        monkeypatch.setattr("fairseq_stack.ops._backends.library", lambda: None)
        assert library() is not None and not steps
        self.assert_stepped(lstm, inputs, steps)
        assert_normwise_close(lstm(inputs)[0], expected, 1e-12)

    def test_under_torch_func(self, steps: list[int]) -> None:
        lstm, inputs = build("sup"), random_inputs()
        with torch.no_grad():
            expected, _ = lstm(inputs, return_state=False)
        actual = torch.func.vmap(lambda x: lstm(x[None], return_state=False)[0][0])(inputs)
        assert len(steps) == inputs.size(1)
        assert_normwise_close(actual, expected, 1e-12)

    @pytest.mark.parametrize("name", [name for name, _ in build("nd").named_parameters()])
    def test_with_a_forward_mode_derivative(self, name: str, steps: list[int]) -> None:
        lstm, inputs = build("nd").requires_grad_(False), random_inputs()
        parameter = lstm.get_parameter(name)

        def outputs(parameter: Tensor, return_state: bool) -> Tensor:
            options = {"return_state": return_state}
            hidden: Tensor = torch.func.functional_call(lstm, {name: parameter}, (inputs,), options)[0]
            return hidden

        tangent = torch.ones_like(parameter)
        expected = torch.func.jvp(lambda x: outputs(x, True), (parameter,), (tangent,))[1]
        assert expected.any()
        with forward_ad.dual_level():
            actual = forward_ad.unpack_dual(outputs(forward_ad.make_dual(parameter, tangent), False)).tangent
        assert_normwise_close(actual, expected, 1e-12)
        assert len(steps) == 2 * inputs.size(1)
