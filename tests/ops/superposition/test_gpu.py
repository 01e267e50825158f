"""What only the Triton kernels of the superposition stack need: other sizes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import superposition_stack
from fairseq_stack.ops.superposition import gpu
from tests.helpers import assert_agree, assert_normwise_close
from tests.ops.gpus import DEVICE
from tests.ops.stacks import STACKS, Way

pytestmark = pytest.mark.triton
STACK = STACKS["superposition"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    Way("superposition", "triton", monkeypatch)


def stack(actions: Tensor, values: Tensor, depth_limit: int | None = None) -> Tensor:
    """The readings, on the CPU."""
    readings: Tensor = gpu.superposition_stack_triton(actions.to(DEVICE), values.to(DEVICE), depth_limit=depth_limit)
    return readings.cpu()


@pytest.mark.parametrize("depth_limit", [1, 3])
def test_other_limits_of_depth(depth_limit: int) -> None:
    """One element, and as many as a program has steps."""
    actions, values = inputs = STACK.random_inputs(2, 10, 3)
    expected = superposition_stack(actions, values, depth_limit=depth_limit)
    assert_agree(stack(actions, values, depth_limit), expected, inputs)


def test_weights_of_any_size() -> None:
    actions, values = torch.randn(2, 9, 3, dtype=torch.float64) * 30, torch.randn(2, 9, 2, dtype=torch.float64)
    assert_normwise_close(stack(actions, values), superposition_stack(actions, values, backend="reference"), 1e-12)


def test_the_operators_are_well_formed() -> None:
    actions = STACK.random_inputs(2, 4, 1)[0].detach().to(DEVICE).requires_grad_()
    torch.library.opcheck(gpu._weights, (actions, 4))
    torch.library.opcheck(
        gpu._weights_backward, (torch.randn(2, 4, 4, dtype=torch.float64, device=DEVICE), actions.detach(), 4)
    )
