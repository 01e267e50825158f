"""What the states of every kind of stack layer must do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairseq_stack.modules import StatefulAttention, SuperpositionStackAttention
from tests.helpers import assert_normwise_close

SIZE = 8


class StateContract:
    """The tests of the states of a layer, whose stacks a subclass builds.

    Attributes:
        uses: what the layer is for: a sublayer of a transformer (``attention``), or the stack of a controller.
    """

    uses: tuple[str, ...] = ("attention", "controller")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test that asks for ``use`` runs for each."""
        if "use" in metafunc.fixturenames:
            metafunc.parametrize("use", self.uses)

    def build(self) -> StatefulAttention:
        """A sublayer of a transformer, in float64."""
        raise NotImplementedError

    def build_for(self, use: str) -> StatefulAttention:
        """The same, or the stack of a recurrent controller."""
        raise NotImplementedError

    @pytest.mark.parametrize("length", [0, 1, 2, 9])
    def test_steps_equal_the_whole_sequence(self, length: int, use: str) -> None:
        sublayer = self.build_for(use)
        inputs = torch.randn(3, length, SIZE, dtype=torch.float64)
        outputs = sublayer(inputs)
        assert outputs.shape == (3, length, sublayer.output_size)
        state = sublayer.initial_state(3)
        for step in range(length):
            output, state = sublayer.step(inputs[:, step], state)
            assert_normwise_close(output, outputs[:, step], 1e-12)

    @pytest.mark.parametrize(("scale", "follows"), [(1.0, False), (1e3, True)], ids=["near-decoding", "far-training"])
    @pytest.mark.parametrize("length", [0, 35])
    def test_extending_a_state_equals_steps(self, length: int, scale: float, follows: bool, use: str) -> None:
        """From the first step on and from a later one; the state that is left can be continued and reordered."""
        sublayer, index = self.build_for(use), torch.tensor([2, 0, 0])
        inputs = scale * torch.randn(3, length + 4, SIZE, dtype=torch.float64)
        with torch.set_grad_enabled(follows):
            state, outputs = sublayer.initial_state(3), []
            for step in range(length + 3):
                output, state = sublayer.step(inputs[:, step], state)
                outputs.append(output)
            first, extended = sublayer.extend(inputs[:, :length], sublayer.initial_state(3))
            then, extended = sublayer.extend(inputs[:, length:-1], extended)
            assert_normwise_close(torch.cat([first, then], 1), torch.stack(outputs, 1), 1e-11)
            expected, actual = (sublayer.step(inputs[index, -1], x.reorder(index))[0] for x in (state, extended))
        assert_normwise_close(actual, expected, 1e-11)

    def test_a_prompt_is_not_stepped_through(self, monkeypatch: pytest.MonkeyPatch) -> None:
        sublayer = self.build()
        if not isinstance(sublayer, SuperpositionStackAttention):
            pytest.skip("takes its steps one by one")
        state_class = type(sublayer.initial_state(3))
        step, steps = state_class.step, []

        def counted(*arguments: Any) -> Any:
            steps.append(arguments)
            return step(*arguments)

        monkeypatch.setattr(state_class, "step", counted)
        with torch.no_grad():
            sublayer.extend(torch.randn(3, 35, SIZE, dtype=torch.float64), sublayer.initial_state(3))
        assert not steps

    @pytest.mark.parametrize("undefined", [torch.nan, torch.inf])
    def test_extending_keeps_what_is_undefined_in_its_place(self, undefined: float) -> None:
        sublayer = self.build()
        inputs = torch.randn(3, 9, SIZE, dtype=torch.float64)
        inputs[1, 4] = undefined
        with torch.no_grad():
            outputs, state = sublayer.extend(inputs, sublayer.initial_state(3))
            last, _ = sublayer.step(inputs[:, 0], state)
        assert outputs.isfinite()[[0, 2]].all() and outputs[1, :4].isfinite().all() and outputs[1, 4:].isnan().all()
        assert last[[0, 2]].isfinite().all() and last[1].isnan().all()

    def test_states_are_reordered_and_never_changed(self, use: str) -> None:
        sublayer = self.build_for(use)
        inputs = torch.randn(3, 6, SIZE, dtype=torch.float64)
        state = sublayer.initial_state(3)
        for step in range(4):
            _, state = sublayer.step(inputs[:, step], state)
        index = torch.tensor([2, 0, 0, 1])
        reordered = state.reorder(index)
        expected, _ = sublayer.step(inputs[:, 4], state)
        actual, _ = sublayer.step(inputs[index, 4], reordered)
        assert_normwise_close(actual, expected[index], 1e-12)
        assert torch.equal(sublayer.step(inputs[:, 4], state)[0], expected)

    def test_no_gradient_flows_through_detached_states(self) -> None:
        sublayer = self.build()
        inputs = torch.randn(3, 6, SIZE, dtype=torch.float64, requires_grad=True)
        state = sublayer.initial_state(3)
        for step in range(4):
            _, state = sublayer.step(inputs[:, step], state)
        expected, _ = sublayer.step(inputs[:, 4], state)
        actual, _ = sublayer.step(inputs[:, 4], state.detach())
        assert torch.equal(actual, expected)
        (gradient,) = torch.autograd.grad(actual.square().sum(), inputs)
        assert gradient[:, :4].eq(0).all() and gradient[:, 4].ne(0).any()
