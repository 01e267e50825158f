from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest
import torch

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from fairseq_stack.ops import nondeterministic_stack, superposition_stack, transition_posterior
from tests.helpers import assert_normwise_close

SIZE = 6
BUILDERS: dict[str, Callable[..., StackAttention]] = {
    "sup": lambda **options: SuperpositionStackAttention(SIZE, 4, **options),
    "nd": lambda **options: NondeterministicStackAttention(SIZE, 2, 3, 4, **options),
}
KINDS = pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)


def test_superposition_is_equations_17_18_and_20() -> None:
    attention = SuperpositionStackAttention(SIZE, 4).double()
    inputs = torch.randn(2, 5, SIZE, dtype=torch.float64)
    actions = torch.softmax(inputs @ attention.actions.weight.T, dim=-1)
    values = torch.sigmoid(inputs @ attention.values.weight.T)
    readings = superposition_stack(actions, values, backend="reference")
    assert_normwise_close(attention(inputs), readings @ attention.output.weight.T, 1e-12)


def test_nondeterministic_is_equations_17_19_and_20() -> None:
    attention = NondeterministicStackAttention(SIZE, 2, 3, 4).double()
    inputs = torch.randn(2, 5, SIZE, dtype=torch.float64)
    by_top = (inputs @ attention.actions.weight.T).reshape(2, 5, 2, 3, 14)
    push, replace = (by_top[..., first : first + 6].reshape(2, 5, 2, 3, 2, 3) for first in (0, 6))
    values = torch.sigmoid(inputs @ attention.values.weight.T)
    bottom = torch.sigmoid(attention.bottom_logits)
    readings = nondeterministic_stack(push, replace, by_top[..., 12:], values, bottom, backend="reference")
    assert_normwise_close(attention(inputs), readings.flatten(2) @ attention.output.weight.T, 1e-12)


def test_released_activations() -> None:
    inputs = torch.randn(3, SIZE)
    superposition = BUILDERS["sup"](value_activation="released")
    assert torch.equal(superposition.pushed_values(inputs), superposition.values(inputs))
    nondeterministic = BUILDERS["nd"](value_activation="released")
    assert torch.equal(nondeterministic.pushed_values(inputs), nondeterministic.values(inputs).exp())


def test_other_pushed_vectors() -> None:
    inputs = torch.randn(3, SIZE)
    stratification = StratificationStackAttention(SIZE, 4, "tanh")
    assert torch.equal(stratification.pushed_values(inputs), stratification.values(inputs).tanh())
    superposition = SuperpositionStackAttention(SIZE, SIZE, push_inputs=True)
    assert torch.equal(superposition.pushed_values(inputs), inputs)
    assert superposition.projections == (superposition.actions,)


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (BUILDERS["sup"], {"value_activation": "tanh"}, "value_activation: expected one of .*'released'.*got 'tanh'"),
        (BUILDERS["sup"], {"push_inputs": True}, "size: expected 6, the size of the inputs that are pushed, got 4"),
        (BUILDERS["sup"], {"depth_limit": 0}, "depth_limit: expected at least 1, got 0"),
        (BUILDERS["nd"], {"bottom_vector": "two"}, r"bottom_vector: expected one of .*, 'one'\), got 'two'"),
        (BUILDERS["nd"], {"window": 0}, "window: expected at least 1, got 0"),
    ],
)
def test_wrong_options(build: Callable[..., StackAttention], options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(**options)


@pytest.mark.parametrize(("bottom_vector", "value"), [("zero", 0.0), ("one", 1.0)])
def test_the_bottom_vector_need_not_be_learned(bottom_vector: Literal["zero", "one"], value: float) -> None:
    stack = NondeterministicStackAttention(SIZE, 2, 3, 4, bottom_vector=bottom_vector)
    assert torch.equal(stack.bottom(), torch.full((4,), value))
    assert "bottom_logits" not in dict(stack.named_parameters())
    assert stack.initial_reading(2).unflatten(1, (6, 4))[:, 0].eq(value).all()


@pytest.mark.parametrize("symbols", [False, True], ids=["vectors", "symbols"])
def test_the_weights_of_transitions_can_be_normalised(symbols: bool) -> None:
    stack = (
        SymbolStackAttention(SIZE, 2, 3, normalize_transitions=True)
        if symbols
        else NondeterministicStackAttention(SIZE, 2, 3, 4, normalize_transitions=True)
    )
    push, replace, pop = stack.transitions(stack.actions(torch.randn(5, SIZE)))
    total = push.exp().sum((-2, -1)) + replace.exp().sum((-2, -1)) + pop.exp().sum(-1)
    assert_normwise_close(total, torch.ones(5, 2, 3), 1e-6)


@KINDS
def test_autocast_agrees_with_full_precision(build: Callable[..., StackAttention]) -> None:
    attention = build()
    inputs = torch.randn(2, 6, SIZE)
    expected = attention(inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = attention(inputs)
        step, _ = attention.step(inputs[:, 0], attention.initial_state(2))
    output.float().sum().backward()
    assert_normwise_close(output, expected, 0.05)
    assert_normwise_close(step, expected[:, 0], 0.05)


def test_a_one_turn_automaton_pushes_keeps_the_top_and_pops() -> None:
    """Which transitions (state, top, next state, next top) are likely at first, with three states."""
    attention = NondeterministicStackAttention(SIZE, 3, 2, 4, bias=True)
    attention.initialize_as_one_turn()
    push, replace, pop = (x.gt(-2).nonzero().tolist() for x in attention.transitions(attention.actions.bias))
    assert push == [[0, x, 0, y] for x in range(2) for y in range(2)]
    assert replace == [[q, x, 1, x] for q in range(2) for x in range(2)]
    assert pop == [[q, x, 2] for q in range(3) for x in range(2)]


def test_a_one_turn_automaton_turns_anywhere() -> None:
    """Of ten steps without inputs, between the fifth, after which all that was pushed can be popped, and the tenth."""
    attention = NondeterministicStackAttention(SIZE, 2, 3, 4, bias=True)
    attention.initialize_as_one_turn()
    transitions = attention.transitions(attention.actions.bias.expand(1, 10, -1))
    pops = transition_posterior(*transitions).pop[0].sum((1, 2, 3))
    assert_normwise_close(pops, torch.tensor([0.0] * 5 + [k / 6 for k in range(1, 6)]), 0.1)


def test_a_one_turn_automaton_needs_biases() -> None:
    with pytest.raises(ValueError, match=r"bias: expected True"):
        NondeterministicStackAttention(SIZE, 2, 3, 4).initialize_as_one_turn()


@pytest.mark.parametrize("depth_limit", [None, 2])
def test_superposition_does_not_step_through_a_prompt(depth_limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    attention, inputs = SuperpositionStackAttention(SIZE, 4, depth_limit=depth_limit), torch.randn(3, 35, SIZE)
    state = attention.initial_state(3)
    monkeypatch.setattr(type(state), "step", None)
    with torch.no_grad():
        outputs, _ = attention.extend(inputs, state)
    assert_normwise_close(outputs, attention(inputs), 1e-5)
