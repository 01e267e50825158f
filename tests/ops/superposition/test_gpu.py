"""The Triton kernels, with short sequences, few push times for each program, and short parts and segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import superposition_stack
from fairseq_stack.ops.superposition import gpu, state
from fairseq_stack.ops.superposition._gpu_step import step_triton
from tests.helpers import assert_normwise_close, each_golden_file
from tests.ops.gpus import DEVICE
from tests.ops.superposition.inputs import gradients, initial_state, random_inputs, step_through

pytestmark = pytest.mark.triton


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_stack.ops.superposition._triton import launch

    for name, size in {"LANES": 4, "PART": 4, "STEPS": 3}.items():
        monkeypatch.setattr(launch, name, size)


def stack(actions: Tensor, values: Tensor, depth_limit: int | None = None) -> Tensor:
    """The readings, on the CPU."""
    found: Tensor = gpu.superposition_stack_triton(actions.to(DEVICE), values.to(DEVICE), depth_limit=depth_limit)
    return found.cpu()


@pytest.mark.parametrize("depth_limit", [None, 1, 3])
@pytest.mark.parametrize(("length", "size"), [(1, 2), (2, 1), (4, 3), (5, 2), (14, 3)])
def test_values_and_gradients(length: int, size: int, depth_limit: int | None) -> None:
    inputs = random_inputs(2, length, size)
    found, expected = stack(*inputs, depth_limit), superposition_stack(*inputs, depth_limit=depth_limit)
    assert_normwise_close(found, expected, 1e-12)
    cotangent = torch.randn_like(found)
    for one, other in zip(gradients(found, inputs, cotangent), gradients(expected, inputs, cotangent), strict=True):
        assert_normwise_close(one, other, 1e-12)


@pytest.mark.parametrize(("batch_size", "length"), [(0, 3), (2, 0)])
def test_nothing_to_compute(batch_size: int, length: int) -> None:
    inputs = random_inputs(batch_size, length, 2)
    found = stack(*inputs)
    assert found.shape == (batch_size, length, 2)
    assert not any(x.any() for x in torch.autograd.grad(found.sum(), inputs))


def test_float32() -> None:
    inputs = random_inputs(2, 9, 3, dtype=torch.float32)
    found, expected = stack(*inputs), superposition_stack(*(x.double() for x in inputs), backend="reference")
    assert found.dtype == torch.float32
    assert_normwise_close(found, expected, 1e-6)


def test_weights_of_any_size() -> None:
    actions, values = torch.randn(2, 9, 3, dtype=torch.float64) * 30, torch.randn(2, 9, 2, dtype=torch.float64)
    assert_normwise_close(stack(actions, values), superposition_stack(actions, values, backend="reference"), 1e-12)


def test_undefined_actions_and_vectors_do_not_reach_back() -> None:
    actions, values = random_inputs(2, 6, 2)
    with torch.no_grad():
        actions[0, 4, 1] = torch.nan
        values[1, 2, 1] = torch.inf
    found, expected = stack(actions, values), superposition_stack(actions, values)
    assert torch.equal(found.isnan(), expected.isnan())
    assert_normwise_close(found.nan_to_num(0), expected.nan_to_num(0), 1e-12)
    assert all(x.isfinite().all() for x in torch.autograd.grad(found[:, :2].sum(), (actions, values)))


@each_golden_file("superposition_0*.npz", "superposition_1*.npz")
def test_golden_values_and_gradients(path: Path) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ("actions", "values")]
    readings = stack(inputs[0], inputs[1])
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    found = gradients(readings, inputs, torch.tensor(golden["cotangent"]))
    for key, gradient in zip(("actions", "values"), found, strict=True):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


def test_the_operators_are_well_formed() -> None:
    actions = random_inputs(2, 4, 1)[0].detach().to(DEVICE).requires_grad_()
    torch.library.opcheck(gpu._weights, (actions, 4))
    torch.library.opcheck(gpu._weights_backward, (torch.randn(2, 4, 4, dtype=torch.float64), actions.detach(), 4))


@pytest.mark.parametrize("depth_limit", [None, 1, 3])
def test_steps(depth_limit: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_stack.ops.superposition._triton import launch

    monkeypatch.setattr(launch, "PLACES", 8)
    monkeypatch.setattr(state, "library", lambda: None)
    inputs = random_inputs(2, 9, 3)
    cotangent = torch.randn_like(inputs[1])
    expected = superposition_stack(*inputs, backend="reference", depth_limit=depth_limit)
    calls = []

    def counted(*arguments: Any) -> Tensor:
        calls.append(arguments)
        return step_triton(*arguments)

    monkeypatch.setattr(state, "prefers_triton", lambda device: True)
    monkeypatch.setattr(state, "step_triton", counted)
    moved = [x.to(DEVICE) for x in inputs]
    begin = replace(initial_state(moved[1]), depth_limit=depth_limit)
    found = step_through(moved, begin).cpu()
    assert len(calls) == 9
    assert_normwise_close(found, expected, 1e-12)
    for one, other in zip(gradients(found, inputs, cotangent), gradients(expected, inputs, cotangent), strict=True):
        assert_normwise_close(one, other, 1e-12)


def test_a_cpu_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^superposition_stack: backend 'triton' needs tensors on a GPU, got cpu$"):
        superposition_stack(*random_inputs(1, 2, 1), backend="triton")
