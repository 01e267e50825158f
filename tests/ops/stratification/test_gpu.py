"""The Triton kernels, with short sequences and few items for each program."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import _item_state, stratification_stack
from fairseq_stack.ops.stratification import gpu
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.gpus import DEVICE
from tests.ops.stratification.inputs import assert_golden, gradients, initial_state, random_inputs, step_through

pytestmark = pytest.mark.triton


@pytest.fixture(autouse=True)
def few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_stack.ops.stratification._triton import launch

    monkeypatch.setattr(launch, "LANES", 4)


def stack(pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0) -> Tensor:
    """The readings, on the CPU."""
    if isinstance(read_strength, Tensor):
        read_strength = read_strength.to(DEVICE)
    inputs = (x.to(DEVICE) for x in (pop, push, values))
    found: Tensor = gpu.stratification_stack_triton(*inputs, read_strength=read_strength)
    return found.cpu()


@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0], ids=["strengths-to-1", "strengths-to-0.3", "strengths-to-3"])
@pytest.mark.parametrize("length", [1, 2, 4, 5, 14])
def test_values_and_gradients(length: int, scale: float) -> None:
    pop, push, values = (x.detach() for x in random_inputs(2, length, 3))
    read_strength = 2 * torch.rand(2, length, dtype=torch.float64)
    leaves = [x.requires_grad_() for x in (scale * pop, scale * push, values, read_strength)]
    found = stack(*leaves[:3], read_strength=leaves[3])
    expected = stratification_stack(*leaves[:3], read_strength=leaves[3], backend="reference")
    assert_normwise_close(found, expected, 1e-12)
    cotangent = torch.randn_like(found)
    for one, other in zip(gradients(found, leaves, cotangent), gradients(expected, leaves, cotangent), strict=True):
        assert_normwise_close(one, other, 1e-12)


@pytest.mark.parametrize(("batch_size", "length"), [(0, 3), (2, 0)])
def test_nothing_to_compute(batch_size: int, length: int) -> None:
    inputs = random_inputs(batch_size, length, 2)
    found = stack(*inputs)
    assert found.shape == (batch_size, length, 2)
    assert not any(x.any() for x in torch.autograd.grad(found.sum(), inputs))


def test_float32_is_rounded_once() -> None:
    inputs = random_inputs(2, 14, 3, dtype=torch.float32)
    found, expected = stack(*inputs), stratification_stack(*(x.double() for x in inputs), backend="reference")
    assert found.dtype == torch.float32
    assert_normwise_close(found, expected, 1e-6)


def test_undefined_strengths_and_vectors_do_not_reach_back() -> None:
    pop, push, values = random_inputs(3, 6, 2)
    with torch.no_grad():
        pop[0, 4] = torch.nan
        push[1, 3] = torch.inf
        values[2, 2, 1] = torch.inf
    found, expected = stack(pop, push, values), stratification_stack(pop, push, values)
    assert torch.equal(found.isnan(), expected.isnan())
    assert_normwise_close(found.nan_to_num(0), expected.nan_to_num(0), 1e-12)
    assert all(x.isfinite().all() for x in torch.autograd.grad(found[:, :2].sum(), (pop, push, values)))


@each_golden_file("stratification_0*.npz", "stratification_1*.npz", "neural_stacks/stack_*.npz")
def test_golden_values_and_gradients(path: Path) -> None:
    assert_golden(np.load(path), lambda inputs, **options: stack(*inputs, **options))


def test_the_operators_are_well_formed() -> None:
    pop, push, amounts = (x.detach().to(DEVICE) for x in (*random_inputs(2, 4, 4)[:2], torch.rand(2, 4).double()))
    torch.library.opcheck(gpu._weights, tuple(x.requires_grad_() for x in (pop, push, amounts)))
    flags = gpu._weights(pop, push, amounts)[1].detach()
    torch.library.opcheck(gpu._weights_backward, (torch.randn(2, 4, 4, dtype=torch.float64), flags))


def test_vmap_of_gradients() -> None:
    inputs = [x.detach().to(DEVICE) for x in random_inputs(3, 4, 2)]
    sum_of = partial(gpu.stratification_stack_triton, read_strength=0.7)

    def loss(pop: Tensor, push: Tensor, values: Tensor) -> Tensor:
        return sum_of(pop[None], push[None], values[None]).square().sum()

    each = torch.func.vmap(torch.func.grad(loss))(*inputs)
    leaf = inputs[0].cpu().requires_grad_()
    together = stratification_stack(leaf, *(x.cpu() for x in inputs[1:]), read_strength=0.7).square().sum()
    assert_normwise_close(each.cpu(), torch.autograd.grad(together, leaf)[0], 1e-12)


def test_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_stack.ops.stratification._triton import launch

    monkeypatch.setattr(launch, "ITEMS", 4)
    monkeypatch.setattr(_item_state, "library", lambda: None)
    inputs = random_inputs(2, 9, 3)
    loss_of = torch.randn(2, 9, 3, dtype=torch.float64)
    results = []
    for on_kernels in (True, False):
        monkeypatch.setattr(_item_state, "prefers_triton", lambda device, on_kernels=on_kernels: on_kernels)
        moved = [x.to(DEVICE if on_kernels else "cpu") for x in inputs]
        state = initial_state(moved[2])
        assert (state._kernels() is not None) == on_kernels
        readings = step_through(moved, state).cpu()
        results.append((readings, *gradients(readings, inputs, loss_of)))
    for found, wanted in zip(*results, strict=True):
        assert_normwise_close(found, wanted, 1e-12)


def test_steps_with_a_strength_that_is_not_finite(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_item_state, "library", lambda: None)
    monkeypatch.setattr(_item_state, "prefers_triton", lambda device: True)
    pop, push, values = random_inputs(2, 4, 2)
    with torch.no_grad():
        pop[0, 2] = torch.nan
    moved = [x.to(DEVICE) for x in (pop, push, values)]
    found = step_through(moved, initial_state(moved[2])).cpu()
    wanted = stratification_stack(pop, push, values)
    assert torch.equal(found.isnan(), wanted.isnan())
    assert_normwise_close(found.nan_to_num(0), wanted.nan_to_num(0), 1e-12)


def test_a_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^stratification_stack: backend 'triton' needs tensors on a GPU, got cpu$"):
        stratification_stack(*random_inputs(1, 2, 1), backend="triton")
