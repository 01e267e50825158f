from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from fairseq_stack.modules import (
    DeltaStackAttention,
    NondeterministicStackAttention,
    StackLSTM,
    SuperpositionStackAttention,
)
from fairseq_stack.modules.dropout import Dropout
from tests.helpers import assert_agree, assert_normwise_close
from tests.models.building import assert_uniform
from tests.modules.lstms import HIDDEN, INPUT, STACKS, build, random_inputs

EACH = pytest.mark.parametrize("name", STACKS)


def test_initialisation() -> None:
    for name in ("weight", "bias"):
        assert_uniform(StackLSTM(100, 16).gates, name, 0.25)


def equations(lstm: StackLSTM, inputs: Tensor) -> Tensor:
    """The outputs, (B, n, output_size), one layer and one step at a time."""
    layers = [lstm.gates, *lstm.upper_gates]
    initial = inputs.new_zeros(len(layers), HIDDEN) if lstm.initial is None else lstm.initial.view(-1, HIDDEN).tanh()
    hidden, cell = [h.expand(len(inputs), -1) for h in initial], [torch.zeros(1, HIDDEN)] * len(layers)
    states = [stack.initial_state(len(inputs)) for stack in lstm.stacks]
    readings = [stack.initial_reading(len(inputs)) for stack in lstm.stacks]
    outputs = []
    for x in inputs.unbind(1):
        read = torch.cat([x, *readings], 1)
        for number, gates in enumerate(layers):
            computed = gates(torch.cat([read, hidden[number]], 1))
            if lstm.controller == "rnn":
                hidden[number] = computed.tanh()
            else:
                i, f, g, o = computed.chunk(4, 1)
                cell[number] = f.sigmoid() * cell[number] + i.sigmoid() * g.tanh()
                hidden[number] = o.sigmoid() * cell[number].tanh()
            read = hidden[number]
        stepped = [stack.step(read, state) for stack, state in zip(lstm.stacks, states, strict=True)]
        readings, states = [reading for reading, _ in stepped], [state for _, state in stepped]
        outputs.append(torch.cat([read, *readings], 1) if lstm.reading_in_output else read)
    return torch.stack(outputs, 1)


@EACH
@pytest.mark.parametrize("return_state", [False, True])
def test_it_is_its_equations(name: str, return_state: bool) -> None:
    lstm, inputs = build(name), random_inputs().requires_grad_()
    outputs, _ = lstm(inputs, return_state=return_state)
    assert_agree(outputs, equations(lstm, inputs), [inputs, *lstm.parameters()], 1e-12)


@EACH
def test_the_output_of_a_state(name: str) -> None:
    """With what it is before the first step: what a language model predicts its first word from."""
    lstm, inputs = build(name), random_inputs()
    outputs, state = lstm(inputs)
    assert torch.equal(lstm.output(state), outputs[:, -1])
    assert torch.equal(lstm.initial_output(3), lstm.output(lstm.initial_state(3)))
    assert bool(lstm.initial_output(3).count_nonzero()) is (lstm.initial is not None or lstm.reading_in_output)


def test_dropout_is_of_what_further_layers_read() -> None:
    lstm, inputs = build("rnn-layers"), random_inputs()
    lstm.dropout = Dropout(1.0)
    actual, _ = lstm(inputs)
    with torch.no_grad():
        for gates in lstm.upper_gates:
            gates.weight[:, :HIDDEN] = 0
    assert torch.equal(actual, lstm.eval()(inputs)[0])


@pytest.mark.parametrize("return_state", [False, True])
def test_stacks_without_biases_are_those_with_biases_of_0(return_state: bool) -> None:
    def make(bias: bool) -> StackLSTM:
        sup = SuperpositionStackAttention(HIDDEN, 4, output=False, bias=bias)
        nd = NondeterministicStackAttention(HIDDEN, 2, 2, 3, output=False, bias=bias)
        return StackLSTM(INPUT, HIDDEN, [sup, nd]).double()

    biased, unbiased, inputs = make(True), make(False), random_inputs()
    unbiased.load_state_dict({name: biased.state_dict()[name] for name in unbiased.state_dict()})
    outputs, expected = (model(inputs, return_state=return_state)[0] for model in (unbiased, biased))
    assert torch.equal(outputs, expected)
    names, parameters = zip(*unbiased.named_parameters(), strict=True)
    actual = torch.autograd.grad(outputs.square().sum(), parameters)
    wanted = torch.autograd.grad(expected.square().sum(), [biased.get_parameter(name) for name in names])
    for name, gradient, other in zip(names, actual, wanted, strict=True):
        assert_normwise_close(gradient, other, 1e-12, name)


@pytest.mark.parametrize("return_state", [False, True])
def test_wrong_inputs(return_state: bool) -> None:
    lstm = build("sup")
    for shape, got in (((2, 6, 4), "(2, 6, 4)"), ((6, 3), "(6, 3)"), ((2, 1, 6, 3), "(2, 1, 6, 3)")):
        with pytest.raises(ValueError, match=re.escape(f"inputs: expected shape (B, n, 3), got {got}")):
            lstm(torch.randn(shape).double(), return_state=return_state)
    with pytest.raises(ValueError, match=re.escape("inputs: expected shape (B, n), got (2,)")):
        lstm(torch.tensor([0, 1]), return_state=return_state)
    with pytest.raises(TypeError, match="state: expected a StackLSTMState, as initial_state makes it, got Tensor"):
        lstm(torch.zeros(2, 6, 3), torch.zeros(2, 6, dtype=torch.bool))
    with pytest.raises(ValueError, match=re.escape("inputs: expected shape (3, n, 3), got (2, 6, 3)")):
        lstm(random_inputs(2), lstm.initial_state(3), return_state=return_state)
    for inputs, message in ((torch.randn(3), "(2, 3), got (3,)"), (torch.tensor([[0], [1]]), "(2), got (2, 1)")):
        with pytest.raises(ValueError, match=re.escape(f"inputs: expected shape {message}")):
            lstm.step(inputs, lstm.initial_state(2))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: NondeterministicStackAttention(4, 2, 0, 5), "num_symbols: expected at least 1, got 0"),
        (lambda: NondeterministicStackAttention(4, 2, 3, 5, window=0), "window: expected at least 1, got 0"),
        (lambda: SuperpositionStackAttention(4, -1), "size: expected at least 1, got -1"),
        (lambda: DeltaStackAttention(4, 1, 2, 2, 0), "num_cells: expected at least 1, got 0"),
        (lambda: StackLSTM(3, 0), "hidden_size: expected at least 1, got 0"),
        (lambda: StackLSTM(3, 4, controller="gru"), "controller: expected one of ('lstm', 'rnn'), got 'gru'"),
        (lambda: StackLSTM(3, 4, cast(Any, [torch.nn.Linear(4, 4)])), "stacks: expected sublayers of StackAttention"),
    ],
)
def test_wrong_sizes(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        wrong()


def test_stacks_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"^stacks: expected model_size 5 like hidden_size, got 6$"):
        StackLSTM(INPUT, HIDDEN, [SuperpositionStackAttention(6, 4, output=False)])
    with pytest.raises(ValueError, match=r"^stacks: expected stacks built with output=False"):
        StackLSTM(INPUT, HIDDEN, [SuperpositionStackAttention(HIDDEN, 4)])


@EACH
@pytest.mark.parametrize("length", [0, 1, 6])
def test_steps_equal_the_whole_sequence_and_sequences_go_on(name: str, length: int) -> None:
    lstm, inputs = build(name), random_inputs(length=length)
    outputs, _ = lstm(inputs)
    assert outputs.shape == (3, length, lstm.output_size)
    state = lstm.initial_state(3)
    for t in range(length):
        hidden, state = lstm.step(inputs[:, t], state)
        assert_normwise_close(hidden, outputs[:, t], 1e-12)
    begun, state = lstm(inputs[:, :2])
    assert_normwise_close(torch.cat([begun, lstm(inputs[:, 2:], state)[0]], dim=1), outputs, 1e-12)


@EACH
def test_integers_are_one_hot_vectors(name: str) -> None:
    lstm, numbers = build(name), torch.tensor([[0, 2, 1, 1], [2, -1, 0, 2]])
    vectors = one_hot(numbers.clamp_min(0), INPUT).double()
    vectors[1, 1] = 0  # -1
    outputs, state = lstm(vectors)
    actual, _ = lstm(numbers)
    assert_normwise_close(actual, outputs, 1e-12)
    assert_normwise_close(lstm.step(numbers[:, 1], state)[0], lstm.step(vectors[:, 1], state)[0], 1e-12)


@EACH
def test_half_precision_and_autocast(name: str) -> None:
    lstm, inputs = build(name).float(), random_inputs().float()
    expected, _ = lstm(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_normwise_close(lstm(inputs)[0], expected, 0.05)
    half, state = lstm.bfloat16()(inputs.bfloat16())
    assert half.dtype == state.hidden.dtype == torch.bfloat16
    assert_normwise_close(half, expected, 0.05)


class TestRecurrentDropout:
    def test_kept_candidates_are_not_scaled_in_training_and_all_are_in_evaluation(self) -> None:
        """As in the code of Semeniuta et al.: c_1 is sigmoid(i) * tanh(g), times 0 or 1, or times 1 - p."""
        lstm, plain = build("none", recurrent_dropout=0.25), build("none")
        plain.load_state_dict(lstm.state_dict())
        inputs = random_inputs(400, 1)
        _, expected = plain(inputs)
        _, state = lstm(inputs)
        kept = state.cell / expected.cell
        assert_normwise_close(kept, kept.round(), 1e-12)
        assert kept.mean().item() == pytest.approx(0.75, abs=0.05)
        assert_normwise_close(lstm.eval()(inputs)[1].cell, 0.75 * expected.cell, 1e-12)

    def test_each_step_has_a_mask_of_its_own(self) -> None:
        lstm = build("sup", recurrent_dropout=0.5)
        inputs = random_inputs(1, 1).expand(1, 30, INPUT)
        with torch.no_grad():
            lstm.gates.weight.zero_()  # c_t = c_{t-1} / 2 + kept_t * tanh(1) / 2
            lstm.gates.bias.zero_()
            lstm.gates.bias[2 * HIDDEN : 3 * HIDDEN] = 1.0
        state, masks = lstm.initial_state(1), []
        for t in range(30):
            _, after = lstm.step(inputs[:, t], state)
            masks.append((after.cell - state.cell / 2).ne(0))
            state = after
        assert 30 < torch.stack(masks).sum() < 120  # of 150
