"""The stratification stack and the queue: items with strengths, against real ones and against their references."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_stack.ops import queue, stratification, stratification_stack
from tests.helpers import assert_agree, gradients
from tests.ops.stacks import STACKS, Way, strengths_of_reading

OPS: dict[str, Callable[..., Tensor]] = {"stratification": stratification_stack, "queue": queue}
WAYS = [(name, way) for name in OPS for way in STACKS[name].ways]
WAYS_WITH_AMOUNTS = [(f"{name}-amounts", way) for name in OPS for way in STACKS[f"{name}-amounts"].ways]
each_way = pytest.mark.parametrize("way", WAYS, indirect=True, ids="-".join)
each_op = pytest.mark.parametrize("name", OPS)
drawn = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def read_items(pop: Tensor, push: Tensor, values: Tensor, order: Callable[[int], Iterable[int]]) -> Tensor:
    """Sections 2.1 and 2.3 of Hao et al. (2018): items are popped and read in an order, given how many there are."""
    readings = torch.zeros_like(values)
    strengths: list[float] = []
    for t, (popped, pushed) in enumerate(zip(pop.tolist(), push.tolist(), strict=True)):
        for i in order(t):
            taken = min(strengths[i], popped)
            strengths[i] -= taken
            popped -= taken
        strengths.append(pushed)
        left = 1.0
        for i in order(t + 1):
            taken = min(strengths[i], left)
            readings[t] += taken * values[i]
            left -= taken
    return readings


@each_way
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_readings_are_exact(way: Way, dtype: torch.dtype) -> None:
    """Strengths are multiples of 1/8, many of which use another up, and nothing is rounded."""
    order = range if way.id.startswith("queue") else lambda count: reversed(range(count))
    for length in (1, 2, 16, 17, 63):
        generator = torch.Generator().manual_seed(length)
        pop, push = torch.randint(13, (2, length), generator=generator).double() / 8
        values = torch.randint(-50, 51, (length, 3), generator=generator).double()
        readings = way.read([x[None].to(dtype) for x in (pop, push, values)])
        assert torch.equal(readings, read_items(pop, push, values, order)[None].to(dtype))


@pytest.fixture(params=[64, 1, 3], ids=lambda tile: f"tile{tile}")
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many steps a tile of a long sequence has."""
    monkeypatch.setattr(stratification.pytorch, "TILE", request.param)


@each_op
@pytest.mark.usefixtures("tile")
def test_strengths_of_any_size_equal_the_reference(name: str) -> None:
    for length in (1, 2, 7, 13):
        for scale in (0.3, 3.0):
            pop, push, values, amounts = strengths_of_reading(3, length, 5)
            inputs = [x.requires_grad_() for x in (scale * pop, scale * push, values)]
            for amount in (1.0, amounts.requires_grad_()):
                actual, expected = (
                    OPS[name](*inputs, read_strength=amount, backend=x) for x in ("pytorch", "reference")
                )
                assert_agree(actual, expected, [*inputs, amounts])


@each_op
@pytest.mark.parametrize("tile", [3], indirect=True)
@pytest.mark.usefixtures("tile")
def test_closed_forms_have_second_derivatives(name: str) -> None:
    inputs = [x.requires_grad_() for x in strengths_of_reading(2, 7, 2)]
    assert torch.autograd.gradgradcheck(lambda *x: OPS[name](*x[:3], read_strength=x[3], backend="pytorch"), inputs)


def test_long_sequences_are_cut_into_tiles() -> None:
    """The greatest tensor of 500 steps has far fewer than 500 * 500 numbers."""
    largest = 0

    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            made = function(*args, **(kwargs or {}))
            largest = max([largest, *(x.numel() for x in tree_leaves(made) if isinstance(x, Tensor))])
            return made

    with Largest():
        stratification_stack(*STACKS["stratification"].random_inputs(1, 500, 3)).sum().backward()
    assert 0 < largest <= 64 * 500


@pytest.mark.parametrize("way", [pair for pair in WAYS if pair[1] != "reference"], indirect=True, ids="-".join)
def test_float32_where_strengths_have_added_up_to_hundreds(way: Way) -> None:
    """Pushed first, then popped: the strengths in between are sums of many."""
    inputs = way.stack.random_inputs(2, 1000, 4, dtype=torch.float32)
    pop, push, _ = (x.detach() for x in inputs)
    pop[:, :500] = 0
    push[:, 500:] = 0
    wide = [x.detach().double().requires_grad_() for x in inputs]
    assert_agree(way.read(inputs), way.read(wide), inputs, 1e-6, 1e-5, wide=wide)


@pytest.mark.parametrize("way", WAYS + WAYS_WITH_AMOUNTS, indirect=True, ids="-".join)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@drawn
@given(data=st.data())
def test_extreme_strengths_are_finite(way: Way, dtype: torch.dtype, data: st.DataObject) -> None:
    strength = st.sampled_from([0.0, torch.finfo(dtype).tiny, 1e-20, 0.5, 1.0, 1e20, torch.finfo(dtype).max])
    pop, push, amounts = (
        torch.tensor(data.draw(st.lists(strength, min_size=7, max_size=7)), dtype=dtype)[None] for _ in range(3)
    )
    large = torch.full((1, 7, 2), 1e30, dtype=dtype)
    for values, amount in ((large, torch.ones_like(amounts)), (large * 1e-30, amounts.clamp(max=1e3))):
        inputs = [x.clone().requires_grad_() for x in (pop, push, values, amount)[: way.stack.num_stepped]]
        readings = way.read(inputs)
        assert readings.isfinite().all()
        assert all(x.isfinite().all() for x in gradients(readings, inputs, torch.ones_like(readings)))


@pytest.mark.parametrize("way", WAYS_WITH_AMOUNTS, indirect=True, ids="-".join)
def test_a_read_strength_that_is_not_finite_concerns_its_step_alone(way: Way) -> None:
    inputs = [x.detach() for x in way.stack.random_inputs(2, 6, 3)]
    expected = way.read(inputs)
    inputs[3][0, 2] = torch.nan
    leaves = [x.requires_grad_() for x in inputs]
    readings = way.read(leaves)
    assert readings[0, 2].isnan().all()
    others = torch.ones(2, 6, dtype=torch.bool)
    others[0, 2] = False
    assert torch.equal(readings[others], expected[others])
    for gradient in gradients(readings[others], leaves[:3], torch.ones_like(expected[others])):
        assert gradient.isfinite().all()


@each_op
def test_wrong_read_strengths(name: str) -> None:
    inputs = STACKS[name].random_inputs(2, 3, 4)
    for amount in (-1, float("nan"), float("inf"), "1", None):
        with pytest.raises(ValueError, match=r"^read_strength: expected a tensor or a finite number from 0 on, got "):
            OPS[name](*inputs, read_strength=amount)
    with pytest.raises(ValueError, match=r"^read_strength: expected shape \(.*, got \(2, 4\)$"):
        OPS[name](*inputs, read_strength=torch.ones(2, 4, dtype=torch.float64))


@pytest.mark.parametrize("way", [pair for pair in WAYS if pair[1].startswith("steps")], indirect=True, ids="-".join)
def test_gradient_of_the_items_of_a_state(way: Way) -> None:
    inputs = way.stack.random_inputs(2, 4, 3)
    _, state = way.stack.step_through(inputs, way.begin(inputs))
    assert torch.equal(state.values, inputs[2])
    (gradient,) = torch.autograd.grad((2 * state.values).sum(), inputs[2])
    assert torch.equal(gradient, torch.full_like(gradient, 2))
