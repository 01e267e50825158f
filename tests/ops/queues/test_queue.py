"""The queue against golden values, a real queue, and its own reference."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import queue
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.queues.inputs import BACKENDS, WAYS, compute, random_read_strength
from tests.ops.stratification.inputs import ARGUMENTS, assert_golden, gradients, random_inputs


@pytest.mark.parametrize("how", WAYS)
@each_golden_file("neural_stacks/queue_*.npz")
def test_golden_values_and_gradients(path: Path, how: str) -> None:
    assert_golden(np.load(path), partial(compute, how=how))


@pytest.mark.parametrize("how", WAYS)
@settings(max_examples=40)
@given(run=st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=12))
def test_whole_strengths_are_a_real_queue(how: str, run: list[tuple[int, bool]]) -> None:
    strengths = torch.tensor(run, dtype=torch.float32)[None]
    values = torch.arange(1.0, len(run) * 2 + 1).view(1, -1, 2)
    rows = compute((strengths[..., 0], strengths[..., 1], values), how)[0]
    waiting: list[Tensor] = []
    for (pops, pushed), vector, row in zip(run, values[0], rows, strict=True):
        waiting = waiting[pops:] + [vector] * pushed
        assert torch.equal(row, waiting[0] if waiting else torch.zeros(2))


@pytest.mark.parametrize("length", [0, 1, 2, 7, 63])
@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0], ids=["strengths-to-1", "strengths-to-0.3", "strengths-to-3"])
def test_pytorch_equals_reference(length: int, scale: float) -> None:
    pop, push, values = (x.detach() for x in random_inputs(3, length, 5))
    inputs = [x.requires_grad_() for x in (scale * pop, scale * push, values)]
    read_strength, cotangent = random_read_strength(values), torch.randn_like(values)
    for amount in (1.0, read_strength):
        found = compute(inputs, "pytorch", read_strength=amount)
        expected = compute(inputs, "reference", read_strength=amount)
        assert found.shape == (3, length, 5)
        assert_normwise_close(found, expected, 1e-12)
        leaves = (*inputs, read_strength)
        for name, actual, wanted in zip(
            (*ARGUMENTS, "read_strength"),
            gradients(found, leaves, cotangent),
            gradients(expected, leaves, cotangent),
            strict=True,
        ):
            assert_normwise_close(actual, wanted, 1e-12, name)


@pytest.mark.parametrize("how", WAYS)
def test_gradcheck(how: str) -> None:
    inputs = random_inputs(2, 4, 2)
    leaves = (*inputs, random_read_strength(inputs[2]))

    def readings(*leaves: Tensor) -> Tensor:
        return compute(leaves[:3], how, read_strength=leaves[3])

    assert torch.autograd.gradcheck(readings, leaves)
    assert torch.autograd.gradgradcheck(readings, leaves)


@pytest.mark.parametrize("length", [100, 1000])
def test_float32_accuracy(length: int) -> None:
    """Also where strengths have added up to hundreds."""
    inputs = random_inputs(2, length, 4, dtype=torch.float32)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    cotangent = torch.randn_like(inputs[2])
    readings, expected = queue(*inputs), queue(*wide)
    assert readings.dtype == torch.float32
    assert_normwise_close(readings, expected, 1e-6)
    for actual, wanted in zip(
        gradients(readings, inputs, cotangent), gradients(expected, wide, cotangent.double()), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-5)


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=40)
@given(data=st.data())
def test_extreme_strengths_are_finite(how: str, dtype: torch.dtype, data: st.DataObject) -> None:
    largest = torch.finfo(dtype).max
    strength = st.sampled_from([0.0, torch.finfo(dtype).tiny, 1e-20, 0.5, 1.0, 1e20, largest])
    pop, push, read_strength = (
        torch.tensor(data.draw(st.lists(strength, min_size=5, max_size=5)), dtype=dtype)[None].requires_grad_()
        for _ in range(3)
    )
    values = torch.full((1, 5, 2), 1e30, dtype=dtype, requires_grad=True)
    readings = compute((pop, push, values), how)
    assert readings.isfinite().all()
    for gradient in gradients(readings, (pop, push, values), torch.ones_like(values)):
        assert gradient.isfinite().all()
    few = compute((pop, push, values * 1e-30), how, read_strength=read_strength.clamp(max=1e3))
    for gradient in gradients(few, (pop, push, values, read_strength), torch.ones_like(values)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
@settings(max_examples=40)
@given(data=st.data())
def test_properties(backend: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    # Multiples of 1/8, so that strengths are used up exactly, and sums are exact.
    strengths = st.lists(st.integers(0, 12), min_size=2 * length, max_size=2 * length)
    pop, push = (torch.tensor(data.draw(strengths), dtype=torch.float64).view(2, length) / 8 for _ in range(2))
    values = torch.rand(2, length, 3, dtype=torch.float64)
    readings = queue(pop, push, values, backend=backend)
    # A mean of the pushed vectors and zero vectors.
    assert (readings >= 0).all()
    assert (readings <= values.cummax(1).values + 1e-12).all()
    # Without pops the first items stay in front, up to the strength 1.
    weights = push.cumsum(1).clamp(max=1).diff(prepend=torch.zeros(2, 1, dtype=torch.float64))
    kept = queue(torch.zeros_like(pop), push, values, backend=backend)
    assert_normwise_close(kept[:, -1], (weights.unsqueeze(2) * values).sum(1), 1e-12)
    # A pop that clears the queue leaves only what comes after it.
    cut = data.draw(st.integers(0, length - 1))
    cleared = pop.clone()
    cleared[:, cut] = 100
    after = queue(pop[:, cut:], push[:, cut:], values[:, cut:], backend=backend)
    assert_normwise_close(queue(cleared, push, values, backend=backend)[:, cut:], after, 1e-12)
    assert_normwise_close(
        queue(pop[:, :cut], push[:, :cut], values[:, :cut], backend=backend), readings[:, :cut], 1e-12
    )
    assert_normwise_close(queue(pop[1:], push[1:], values[1:], backend=backend), readings[1:], 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, autocast: bool, backend: str) -> None:
    inputs = [x.detach().to(dtype) for x in random_inputs(2, 20, 5)]
    read_strength = random_read_strength(inputs[2]).detach()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        readings = compute(inputs, backend, read_strength=read_strength)
    expected = compute([x.float() for x in inputs], backend, read_strength=read_strength.float())
    assert readings.dtype == dtype
    assert torch.equal(readings, expected.to(dtype))


@pytest.mark.parametrize("how", WAYS)
def test_a_read_strength_that_is_not_finite_concerns_its_step_alone(how: str) -> None:
    inputs = random_inputs(2, 6, 3)
    read_strength = random_read_strength(inputs[2]).detach()
    expected = compute(inputs, how, read_strength=read_strength)
    read_strength[0, 2] = torch.nan
    readings = compute(inputs, how, read_strength=read_strength)
    assert readings[0, 2].isnan().all()
    others = torch.ones(2, 6, dtype=torch.bool)
    others[0, 2] = False
    assert torch.equal(readings[others], expected[others])
    for gradient in gradients(readings[others], inputs, torch.ones_like(expected[others])):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("read_strength", [-1, float("nan"), float("inf"), "1", None])
@pytest.mark.parametrize("how", WAYS)
def test_wrong_read_strength(how: str, read_strength: float) -> None:
    with pytest.raises(ValueError, match=r"^read_strength: expected a tensor or a finite number from 0 on, got "):
        compute(random_inputs(2, 3, 4), how, read_strength=read_strength)


@pytest.mark.parametrize("backend", BACKENDS)
def test_wrong_shape_of_read_strength(backend: str) -> None:
    with pytest.raises(ValueError, match=r"^read_strength: expected shape \(B, n\) with B = 2, n = 3, got \(2, 4\)$"):
        compute(random_inputs(2, 3, 4), backend, read_strength=torch.ones(2, 4, dtype=torch.float64))
