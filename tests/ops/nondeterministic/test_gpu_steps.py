"""The steps of the nondeterministic stack by Triton kernels, against the same steps in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import NondeterministicStackState
from fairseq_stack.ops.nondeterministic import _panel_columns, _panels, state
from fairseq_stack.ops.nondeterministic._panel_columns import step_pytorch
from tests.helpers import assert_normwise_close, hostile
from tests.ops.gpus import DEVICE
from tests.ops.nondeterministic.inputs import random_inputs, step_through, weighted_sum

pytestmark = pytest.mark.triton


@pytest.fixture(autouse=True)
def several_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "library", lambda: None)
    monkeypatch.setattr(_panels, "FEWEST", 3)


def first_state(
    inputs: Sequence[Tensor], monkeypatch: pytest.MonkeyPatch, *, on_kernels: bool, window: int | None = None
) -> NondeterministicStackState:
    from fairseq_stack.ops.nondeterministic._gpu_step import step_triton

    monkeypatch.setattr(_panel_columns, "step_for", lambda device: step_triton if on_kernels else step_pytorch)
    batch_size, _, num_states, num_symbols = inputs[0].shape[:4]
    return NondeterministicStackState.initial(
        inputs[4].to(DEVICE if on_kernels else "cpu"),
        batch_size=batch_size, num_states=num_states, num_symbols=num_symbols, window=window, weighs=True,
    )  # fmt: skip


def assert_same_steps(inputs: Sequence[Tensor], monkeypatch: pytest.MonkeyPatch, window: int | None = None) -> None:
    """Readings, log alpha and the gradients of both."""
    results = []
    for on_kernels in (True, False):
        begin = first_state(inputs, monkeypatch, on_kernels=on_kernels, window=window)
        readings, end = step_through([x.to(begin.like.device) for x in inputs], begin)
        loss = weighted_sum(readings.cpu()) + weighted_sum(end.log_weights.cpu().clamp_min(-1e6))
        gradients = torch.autograd.grad(loss, inputs, materialize_grads=True)
        results.append((readings.cpu(), end.log_weights.cpu(), *gradients))
    for actual, wanted in zip(*results, strict=True):
        assert_normwise_close(actual, wanted, 1e-10)


@pytest.mark.parametrize("sizes", [(1, 1), hostile((2, 1)), hostile((1, 3)), (2, 3)], ids=str)
@pytest.mark.parametrize("length", [1, 2, 3, 8])
def test_values_and_gradients(length: int, sizes: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_steps(random_inputs(2, length, *sizes), monkeypatch)


@pytest.mark.parametrize("window", [1, 2, 3, 5])
def test_limited_memory(window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_steps(random_inputs(1, 8, 2, 1), monkeypatch, window)


def test_parts_of_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairseq_stack.ops.nondeterministic import _gpu_step

    monkeypatch.setattr(_gpu_step, "ELEMENTS", 16)
    monkeypatch.setattr(_panels, "FEWEST", 5)
    assert_same_steps(random_inputs(1, 9, 1, 2), monkeypatch)


@pytest.mark.parametrize(("std", "masked"), [(30.0, 0.0), (1.0, 0.6)])
def test_weights_of_any_size(std: float, masked: float, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_same_steps(random_inputs(2, 7, 2, 1, std=std, masked=masked), monkeypatch)


def test_what_float64_cannot_hold_is_computed_in_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = random_inputs(1, 5, 1, 2, std=1000.0)
    kinds = []
    for on_kernels in (True, False):
        begin = first_state(inputs, monkeypatch, on_kernels=on_kernels)
        kinds.append(type(step_through([x.to(begin.like.device) for x in inputs], begin)[1].columns).__name__)
    assert kinds == ["TrackedColumns", "TrackedColumns"]
    assert_same_steps(inputs, monkeypatch)
