"""The stratification stack against golden values, a real stack, and its own reference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fairseq_stack.ops import stratification, stratification_stack
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.stratification.inputs import (
    ARGUMENTS,
    assert_golden,
    gradients,
    initial_state,
    random_inputs,
    step_through,
)

BACKENDS = ["reference", "pytorch"]


def compute(inputs: Sequence[Tensor], how: str, *, read_strength: float | Tensor = 1.0) -> Tensor:
    pop, push, values = inputs
    if how == "state":
        return step_through(inputs, initial_state(values), read_strength)
    return stratification_stack(pop, push, values, read_strength=read_strength, backend=how)


@pytest.mark.parametrize("how", [*BACKENDS, "state"])
@each_golden_file("stratification_*.npz", "neural_stacks/stack_*.npz")
def test_golden_values_and_gradients(path: Path, how: str) -> None:
    assert_golden(np.load(path), partial(compute, how=how))


@pytest.mark.parametrize("how", [*BACKENDS, "state"])
@given(
    runs=st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=12, max_size=12),
        min_size=1,
        max_size=4,
    )
)
def test_whole_strengths_are_a_real_stack(how: str, runs: list[list[tuple[int, bool]]]) -> None:
    strengths = torch.tensor([[[pops, pushed] for pops, pushed in run] for run in runs], dtype=torch.float32)
    values = torch.arange(1.0, len(runs) * 12 * 2 + 1).view(len(runs), 12, 2)
    readings = compute((strengths[..., 0], strengths[..., 1], values), how)
    for run, vectors, rows in zip(runs, values, readings, strict=True):
        stack: list[Tensor] = []
        for (pops, pushed), vector, row in zip(run, vectors, rows, strict=True):
            del stack[max(len(stack) - pops, 0) :]
            if pushed:
                stack.append(vector)
            assert torch.equal(row, stack[-1] if stack else torch.zeros(2))


@pytest.fixture(params=[64, 1, 3], ids=lambda tile: f"tile{tile}")
def tile(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many steps a tile of a long sequence has."""
    monkeypatch.setattr(stratification.pytorch, "TILE", request.param)


@pytest.mark.usefixtures("tile")
@pytest.mark.parametrize("length", [0, 1, 2, 7, 63, 200])
@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0], ids=["strengths-to-1", "strengths-to-0.3", "strengths-to-3"])
def test_pytorch_equals_reference(length: int, scale: float) -> None:
    pop, push, values = (x.detach() for x in random_inputs(3, length, 5))
    inputs = [x.requires_grad_() for x in (scale * pop, scale * push, values)]
    cotangent = torch.randn_like(values)
    readings = stratification_stack(*inputs, backend="pytorch")
    expected = stratification_stack(*inputs, backend="reference")
    assert readings.shape == (3, length, 5)
    assert_normwise_close(readings, expected, 1e-12, "readings")
    for name, actual, wanted in zip(
        ARGUMENTS,
        gradients(readings, inputs, cotangent),
        gradients(expected, inputs, cotangent),
        strict=True,
    ):
        assert_normwise_close(actual, wanted, 1e-12, name)


@pytest.mark.usefixtures("tile")
@pytest.mark.parametrize("read_strength", [0.4, torch.rand(2, 9, dtype=torch.float64)], ids=["number", "of-each-step"])
def test_tiles_have_all_derivatives(read_strength: float | Tensor) -> None:
    inputs = random_inputs(2, 9, 2)
    read = partial(stratification_stack, read_strength=read_strength, backend="pytorch")
    assert torch.autograd.gradcheck(read, inputs)
    assert torch.autograd.gradgradcheck(read, inputs)
    expected = stratification_stack(*inputs, read_strength=read_strength, backend="reference")
    assert_normwise_close(read(*inputs), expected, 1e-12)


def test_long_sequences_are_cut_into_tiles() -> None:
    """The greatest tensor of 500 steps has far fewer than 500 * 500 numbers."""
    largest = 0

    class Largest(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            nonlocal largest
            found = function(*args, **(kwargs or {}))
            largest = max([largest, *(x.numel() for x in tree_leaves(found) if isinstance(x, Tensor))])
            return found

    inputs = random_inputs(1, 500, 3)
    with Largest():
        stratification_stack(*inputs).sum().backward()
    assert 0 < largest <= 64 * 500


@pytest.mark.parametrize("how", ["pytorch", "state"])
def test_read_strength_of_each_step(how: str) -> None:
    inputs = random_inputs(3, 9, 4)
    read_strength = (3 * torch.rand(3, 9, dtype=torch.float64)).requires_grad_()
    leaves, cotangent = (*inputs, read_strength), torch.randn_like(inputs[2])
    readings, expected = (compute(inputs, way, read_strength=read_strength) for way in (how, "reference"))
    assert_normwise_close(readings, expected, 1e-12)
    found, wanted = (gradients(x, leaves, cotangent) for x in (readings, expected))
    for name, actual, right in zip((*ARGUMENTS, "read_strength"), found, wanted, strict=True):
        assert_normwise_close(actual, right, 1e-12, name)


@pytest.mark.parametrize("how", [*BACKENDS, "state"])
@pytest.mark.parametrize("length", [1, 5])
def test_gradcheck(length: int, how: str) -> None:
    inputs = random_inputs(2, length, 2)
    assert torch.autograd.gradcheck(lambda *x: compute(x, how), inputs)
    assert torch.autograd.gradgradcheck(lambda *x: compute(x, how), inputs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_float32_accuracy(backend: str) -> None:
    inputs = random_inputs(2, 100, 4, dtype=torch.float32)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    cotangent = torch.randn_like(inputs[2])
    expected = stratification_stack(*wide, backend="reference")
    readings = stratification_stack(*inputs, backend=backend)
    assert readings.dtype == torch.float32
    assert_normwise_close(readings, expected, 1e-5 if backend == "reference" else 1e-6)
    for actual, wanted in zip(
        gradients(readings, inputs, cotangent), gradients(expected, wide, cotangent.double()), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
@given(data=st.data())
def test_properties(backend: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    # Multiples of 1/8, so that strengths are used up exactly, and sums are exact.
    strengths = st.lists(st.integers(0, 12), min_size=2 * length, max_size=2 * length)
    pop, push = (torch.tensor(data.draw(strengths), dtype=torch.float64).view(2, length) / 8 for _ in range(2))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    values = torch.rand(2, length, 3, generator=generator, dtype=torch.float64)

    def read(pop: Tensor, push: Tensor, values: Tensor) -> Tensor:
        return stratification_stack(pop, push, values, backend=backend)

    readings = read(pop, push, values)
    # A mean of the pushed vectors and zero vectors.
    assert (readings >= 0).all()
    assert (readings <= values.cummax(1).values + 1e-12).all()
    # Nothing is above an item that has just been pushed: it is read with its strength, up to 1.
    assert (readings[:, 0] == push[:, :1].clamp(max=1) * values[:, 0]).all()
    # A pop that clears the stack leaves only what comes after it.
    cut = data.draw(st.integers(0, length - 1))
    cleared = pop.clone()
    cleared[:, cut] = 100
    after = read(pop[:, cut:], push[:, cut:], values[:, cut:])
    assert_normwise_close(read(cleared, push, values)[:, cut:], after, 1e-12)
    # Causal, and linear in the vectors; sequences of a batch and components of vectors do not interact.
    assert_normwise_close(read(pop[:, :cut], push[:, :cut], values[:, :cut]), readings[:, :cut], 1e-12)
    assert_normwise_close(read(pop, push, -2 * values), -2 * readings, 1e-12)
    assert_normwise_close(read(pop[1:], push[1:], values[1:]), readings[1:], 1e-12)
    assert_normwise_close(read(pop, push, values[:, :, :1]), readings[:, :, :1], 1e-12)


@pytest.mark.parametrize("how", [*BACKENDS, "state"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(data=st.data())
def test_extreme_strengths_are_finite(how: str, dtype: torch.dtype, data: st.DataObject) -> None:
    largest = torch.finfo(dtype).max
    strength = st.sampled_from([0.0, torch.finfo(dtype).tiny, 1e-20, 0.5, 1.0, 1e20, largest])
    pop, push = (
        torch.tensor(data.draw(st.lists(strength, min_size=7, max_size=7)), dtype=dtype)[None].requires_grad_()
        for _ in range(2)
    )
    values = torch.full((1, 7, 2), 1e30, dtype=dtype, requires_grad=True)
    readings = compute((pop, push, values), how)
    assert readings.isfinite().all()
    for gradient in gradients(readings, (pop, push, values), torch.ones_like(values)):
        assert gradient.isfinite().all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, autocast: bool, backend: str) -> None:
    inputs = [x.detach().to(dtype).requires_grad_() for x in random_inputs(2, 20, 5)]
    wide = [x.detach().float().requires_grad_() for x in inputs]
    cotangent = torch.randn(2, 20, 5).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        readings = stratification_stack(*inputs, backend=backend)
    expected = stratification_stack(*wide, backend=backend)
    assert readings.dtype == dtype
    assert torch.equal(readings, expected.to(dtype))
    for actual, wanted in zip(
        gradients(readings, inputs, cotangent), gradients(expected, wide, cotangent.float()), strict=True
    ):
        assert actual.dtype == dtype
        assert torch.equal(actual, wanted.to(dtype))


def test_autocast_does_not_lower_the_precision_of_float32() -> None:
    pop, push, values = (x.detach() for x in random_inputs(2, 20, 5, dtype=torch.float32))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        whole = stratification_stack(pop, push, values)
        stepped = step_through((pop, push, values), initial_state(values))
    assert torch.equal(whole, stratification_stack(pop, push, values))
    assert torch.equal(stepped, step_through((pop, push, values), initial_state(values)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_non_contiguous_arguments(backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(3, 9, 4)]
    strided = [x.transpose(0, 1).contiguous().transpose(0, 1) for x in inputs]
    assert not any(x.is_contiguous() for x in strided)
    readings = stratification_stack(*strided, backend=backend)
    assert_normwise_close(readings, stratification_stack(*inputs, backend=backend), 1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu(backend: str) -> None:
    inputs = random_inputs(3, 20, 4)
    on_device = [x.detach().cuda().requires_grad_() for x in inputs]
    cotangent = torch.randn_like(inputs[2])
    expected = stratification_stack(*inputs, backend=backend)
    readings = stratification_stack(*on_device, backend=backend)
    assert readings.is_cuda
    assert_normwise_close(readings, expected, 1e-12)
    for actual, wanted in zip(
        gradients(readings, on_device, cotangent.cuda()), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-12)
