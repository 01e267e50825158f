"""What every kind of stack layer must do, whoever brings it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from fairseq_stack.kinds import DELTA_STACK, Layer
from fairseq_stack.models.transformer.self_attention import StackSelfAttention
from fairseq_stack.modules import (
    AutomatonStackAttention,
    StackAttention,
    StackLSTM,
    StatefulAttention,
    SymbolStackAttention,
)
from fairseq_stack.networks import LSTMOptions, TransformerOptions
from tests.helpers import assert_normwise_close

SIZE = 8


class KindContract:
    """The tests of a layer as a module; a subclass, whose name begins with ``Test``, says which.

    Attributes:
        layer: the layer.
        cfg: the options of a model that it is built with.
        controller_cfg: the options of a model with a recurrent controller that its stack is built with.
        uses: what the layer is for: a sublayer of a transformer (``attention``), or the stack of a controller.
    """

    layer: Layer
    cfg: Any = TransformerOptions()
    controller_cfg: Any = LSTMOptions()
    uses: tuple[str, ...] = ("attention", "controller")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """A test that asks for ``use`` runs for each."""
        if "use" in metafunc.fixturenames:
            metafunc.parametrize("use", self.uses)

    def build(self) -> StatefulAttention:
        """A sublayer of a transformer, in float64."""
        return self.layer.build(SIZE, self.cfg).double()

    def build_stack(self) -> StackAttention:
        return self.layer.build_stack(SIZE, self.controller_cfg).double()

    def build_for(self, use: str) -> StatefulAttention:
        return self.build_stack() if use == "controller" else self.build()

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

    def test_wrong_inputs(self, use: str) -> None:
        sublayer = self.build_for(use)
        for shape in ((5, SIZE), (2, 5, SIZE + 1), (SIZE,), (2, 1, 5, SIZE)):
            with pytest.raises(
                ValueError, match=f"^inputs: expected shape .B, n, {SIZE}., got {re.escape(str(shape))}$"
            ):
                sublayer(torch.randn(shape).double())
            with pytest.raises(ValueError, match=r"^inputs: expected shape"):
                sublayer.extend(torch.randn(shape).double(), sublayer.initial_state(2))
        for shape, dtype in (((5, 2), torch.bool), ((2, 5), torch.int64)):
            message = f"padding_mask: expected a boolean tensor of shape (2, 5), true at padding, got {dtype} of shape "
            with pytest.raises(ValueError, match=f"^{re.escape(message + str(shape))}$"):
                sublayer(torch.randn(2, 5, SIZE).double(), torch.zeros(shape, dtype=dtype))
        for shape in ((SIZE,), (2, SIZE + 1), (2, 1, SIZE)):
            with pytest.raises(ValueError, match=f"^inputs: expected shape .B, {SIZE}., got {re.escape(str(shape))}$"):
                sublayer.step(torch.randn(shape).double(), sublayer.initial_state(2))

    def test_a_controller_has_biases_and_no_output_layer(self) -> None:
        stack = self.build_stack()
        assert stack.projections
        assert all(projection.bias is not None for projection in stack.projections)
        assert "output.weight" not in dict(stack.named_parameters())
        assert stack.output_size == stack.reading_size == stack.initial_reading(3).size(1)

    def test_an_lstm_controls_it_beside_another(self) -> None:
        lstm = StackLSTM(SIZE, SIZE, [self.build_stack(), self.build_stack()]).double()
        inputs = torch.randn(3, 6, SIZE, dtype=torch.float64)
        outputs, _ = lstm(inputs)
        assert_normwise_close(lstm(inputs, return_state=False)[0], outputs, 1e-12)
        state = lstm.initial_state(3)
        for step in range(6):
            output, state = lstm.step(inputs[:, step], state)
            assert_normwise_close(output, outputs[:, step], 1e-12)
        outputs.square().sum().backward()
        for name, parameter in lstm.named_parameters():
            assert parameter.grad is not None and parameter.grad.count_nonzero() > 0, name

    def test_outputs_depend_on_the_past_only(self) -> None:
        sublayer = self.build()
        inputs = torch.randn(2, 9, SIZE, dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(sublayer(inputs)[:, :5].square().sum(), inputs)
        assert gradient[:, 5:].eq(0).all()
        assert gradient[:, :5].ne(0).any()
        changed = torch.cat([inputs[:, :5], torch.randn(2, 4, SIZE, dtype=torch.float64)], dim=1)
        before, after = sublayer(inputs), sublayer(changed)
        assert torch.equal(before[:, :5], after[:, :5])
        assert not torch.equal(before[:, 5], after[:, 5])

    @pytest.mark.parametrize("where", ["left", "right", "within"])
    def test_what_is_at_padding_changes_nothing(self, where: str) -> None:
        """No output elsewhere, and no gradient of a parameter; outputs at padding are 0."""
        padding = torch.zeros(3, 9, dtype=torch.bool)
        padding[0, :4] = padding[1, :1] = True
        padding = {"left": padding, "right": padding.flip(1), "within": padding.roll(2, 1)}[where]
        sublayer = self.build()
        inputs = torch.randn(3, 9, SIZE, dtype=torch.float64)

        def results(inputs: Tensor) -> list[Tensor]:
            inputs = inputs.clone().requires_grad_()
            outputs = sublayer(inputs, padding)
            assert outputs[padding].eq(0).all()
            gradients = torch.autograd.grad(outputs.square().sum(), [inputs, *sublayer.parameters()])
            return [outputs.detach(), *gradients]

        expected = results(inputs)
        for garbage in (torch.nan, torch.inf, -torch.inf):
            assert all(map(torch.equal, results(inputs.masked_fill(padding[..., None], garbage)), expected)), garbage
        outputs = sublayer(inputs, padding)
        for row in range(3):
            alone = sublayer(inputs[row][~padding[row]][None])
            assert_normwise_close(outputs[row][~padding[row]], alone[0], 1e-12)
        from_fairseq, _ = StackSelfAttention(sublayer)(inputs.transpose(0, 1), key_padding_mask=padding)
        assert torch.equal(from_fairseq.transpose(0, 1), outputs)

    def test_every_parameter_learns(self) -> None:
        sublayer = self.build()
        sublayer(torch.randn(2, 6, SIZE, dtype=torch.float64)).square().sum().backward()
        for name, parameter in sublayer.named_parameters():
            assert parameter.grad is not None and parameter.grad.count_nonzero() > 0, name

    def test_it_says_what_it_does(self, use: str) -> None:
        """Readings are weighted sums of the bottom and the vectors that have been pushed."""
        sublayer, inputs = self.build_for(use), torch.randn(6, SIZE, dtype=torch.float64)
        symbols = tuple("abcdef")
        stack = sublayer.inspected(inputs, "decoder.layers.0", symbols, num_runs=2)
        assert stack is not None and (stack.layer, stack.inputs) == ("decoder.layers.0", symbols)
        assert stack.is_automaton is sublayer.is_automaton
        assert stack.operations().shape == (6, len(stack.actions))
        assert len(stack.pushed) == stack.weights.size(1) and not stack.weights[:, -6:].triu(1).any()
        json.dumps(stack.as_json(), allow_nan=False)
        readings = sublayer.readings(sublayer.actions(inputs[None]), sublayer.pushed_values(inputs[None]))[0]
        vectors = sublayer.pushed_values(inputs)
        if isinstance(sublayer, AutomatonStackAttention):
            vectors = torch.cat([sublayer.bottom()[None], vectors])
            readings = readings.flatten(1, -2).sum(1)
        if not isinstance(sublayer, SymbolStackAttention):
            assert_normwise_close(stack.weights @ vectors, readings, 1e-12)

    def test_the_paper_initialises_it(self) -> None:
        """Fully connected layers are Xavier uniform with biases 0, where the kind does not say something else."""
        for stack in (self.build(), self.build_stack()):
            for parameter in stack.parameters():
                parameter.data.fill_(9)
            stack.initialize_as_in_paper()
            linears = [x for x in (stack.actions, stack.values, stack.output) if isinstance(x, nn.Linear)]
            stays = isinstance(stack, AutomatonStackAttention) and stack.output_size == stack.reading_size
            for linear in linears:
                bound = 9 if stays else math.sqrt(6 / (linear.in_features + linear.out_features))
                assert linear.weight.abs().max() <= bound and (linear.weight == 9).all() == stays
                assert linear.bias is None or (linear.bias == 9 * stays).all()


class AttentionContract(KindContract):
    """The tests of a layer that no recurrent controller drives, and that has an initialisation of its own."""

    uses = ("attention",)
    test_a_controller_has_biases_and_no_output_layer = None  # type: ignore[assignment]
    test_an_lstm_controls_it_beside_another = None  # type: ignore[assignment]

    def test_it_says_what_it_does(self, use: str) -> None:
        """Of each head that has a stack: readings are weighted sums of the vectors that have been pushed."""
        sublayer, inputs = self.build(), torch.randn(6, SIZE, dtype=torch.float64)
        symbols = tuple("abcdef")
        heads = sublayer.inspected_heads(inputs, "decoder.layers.0", symbols)
        num_stacks = self.layer.sizes[0] if self.layer.kind is DELTA_STACK else 0
        assert [head.layer for head in heads] == [f"decoder.layers.0.heads.{number}" for number in range(num_stacks)]
        for number, head in enumerate(heads):
            json.dumps(head.as_json(), allow_nan=False)
            assert_normwise_close(head.operations().sum(1), torch.ones(6, dtype=torch.float64), 1e-12)
            _, _, pushed, _ = sublayer.arguments_of(inputs[None])
            readings = sublayer.readings_of(inputs[None])[0, :, number]
            assert_normwise_close(head.weights @ pushed[number] / math.sqrt(self.layer.sizes[-1]), readings, 1e-12)

    def test_the_paper_initialises_it(self) -> None:
        """As the constructor does."""
        torch.manual_seed(3)
        expected, sublayer = self.layer.build(SIZE, self.cfg), self.layer.build(SIZE, self.cfg)
        for name, parameter in sublayer.named_parameters():
            least, most = expected.get_parameter(name).aminmax()
            parameter.data.fill_(99)
            sublayer.initialize_as_in_paper()
            assert parameter.lt(99).all() and (least == most) == (parameter.min() == parameter.max()), name
