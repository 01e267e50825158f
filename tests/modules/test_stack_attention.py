from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pytest
import torch

from fairseq_stack.modules import (
    NondeterministicStackAttention,
    StackAttention,
    StratificationStackAttention,
    SuperpositionStackAttention,
    SymbolStackAttention,
)
from fairseq_stack.ops import nondeterministic_stack, superposition_stack
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


@KINDS
def test_unknown_activation_is_an_error(build: Callable[..., StackAttention]) -> None:
    with pytest.raises(ValueError, match=r"value_activation: expected one of .*'sigmoid', 'released'.*got 'tanh'"):
        build(value_activation="tanh")


def test_stratification_can_push_vectors_with_tanh() -> None:
    inputs = torch.randn(3, SIZE)
    stack = StratificationStackAttention(SIZE, 4, "tanh")
    assert torch.equal(stack.pushed_values(inputs), stack.values(inputs).tanh())


def test_superposition_can_push_its_inputs() -> None:
    inputs = torch.randn(3, SIZE)
    stack = SuperpositionStackAttention(SIZE, SIZE, push_inputs=True)
    assert torch.equal(stack.pushed_values(inputs), inputs)
    assert stack.projections == (stack.actions,)
    with pytest.raises(ValueError, match="size: expected 6, the size of the inputs that are pushed, got 4"):
        SuperpositionStackAttention(SIZE, 4, push_inputs=True)


@pytest.mark.parametrize("limit", [1, 2, 3, 9])
def test_superposition_can_lose_what_is_deep(limit: int) -> None:
    """Three vectors are pushed, then all is popped, one by one."""
    stack = SuperpositionStackAttention(SIZE, 2, value_activation="released", depth_limit=limit)
    push, pop = torch.tensor([1.0, -torch.inf, -torch.inf]), torch.tensor([-torch.inf, -torch.inf, 1.0])
    values = torch.arange(1.0, 7.0).repeat(2, 1).t()[None]
    readings = stack.readings(torch.stack([push, push, push, pop, pop, pop])[None], values)
    deep = [3.0, 2.0, 1.0][1:limit]
    assert readings[0, :, 0].tolist() == [1.0, 2.0, 3.0, *deep, *[0.0] * (3 - len(deep))]


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    limited, free = SuperpositionStackAttention(SIZE, 4, depth_limit=8), SuperpositionStackAttention(SIZE, 4)
    free.load_state_dict(limited.state_dict())
    inputs = torch.randn(3, 8, SIZE)
    assert_normwise_close(limited(inputs), free(inputs), 1e-6)
    assert limited(inputs[:, :0]).shape == (3, 0, SIZE)
    with pytest.raises(ValueError, match="depth_limit: expected at least 1, got 0"):
        SuperpositionStackAttention(SIZE, 4, depth_limit=0)


@pytest.mark.parametrize(("bottom_vector", "value"), [("zero", 0.0), ("one", 1.0)])
def test_the_bottom_vector_need_not_be_learned(bottom_vector: Literal["zero", "one"], value: float) -> None:
    stack = NondeterministicStackAttention(SIZE, 2, 3, 4, bottom_vector=bottom_vector)
    assert torch.equal(stack.bottom(), torch.full((4,), value))
    assert "bottom_logits" not in dict(stack.named_parameters())
    assert stack.initial_reading(2).unflatten(1, (6, 4))[:, 0].eq(value).all()


def test_an_unknown_bottom_vector_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"bottom_vector: expected one of \('learned', 'zero', 'one'\), got 'two'"):
        NondeterministicStackAttention(SIZE, 2, 3, 4, bottom_vector="two")  # type: ignore[arg-type]


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
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_inputs_give_half_precision_outputs(
    build: Callable[..., StackAttention], dtype: torch.dtype
) -> None:
    attention = build()
    inputs = torch.randn(2, 6, SIZE)
    expected = attention(inputs)
    half = attention.to(dtype)(inputs.to(dtype))
    assert half.dtype == dtype
    assert_normwise_close(half, expected, 0.05)


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
