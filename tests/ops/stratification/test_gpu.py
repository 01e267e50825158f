"""What only the Triton kernels of the stratification stack need."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import stratification_stack
from fairseq_stack.ops.stratification import gpu
from tests.helpers import assert_normwise_close
from tests.ops.gpus import DEVICE
from tests.ops.stacks import STACKS, Way

pytestmark = pytest.mark.triton
STACK = STACKS["stratification"]


@pytest.fixture(autouse=True)
def few_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    Way("stratification", "triton", monkeypatch)


@pytest.mark.parametrize("scale", [0.3, 3.0], ids=["strengths-to-0.3", "strengths-to-3"])
def test_strengths_of_any_size(scale: float) -> None:
    pop, push, values = (x.detach().to(DEVICE) for x in STACK.random_inputs(2, 14, 3))
    readings = gpu.stratification_stack_triton(scale * pop, scale * push, values, read_strength=0.7)
    expected = stratification_stack(scale * pop, scale * push, values, read_strength=0.7, backend="reference")
    assert_normwise_close(readings, expected, 1e-12)


def test_the_operators_are_well_formed() -> None:
    pop, push = (x.detach().to(DEVICE) for x in STACK.random_inputs(2, 4, 4)[:2])
    amounts = torch.rand(2, 4).double().to(DEVICE)
    torch.library.opcheck(gpu._weights, tuple(x.requires_grad_() for x in (pop, push, amounts)))
    flags = gpu._weights(pop, push, amounts)[1].detach()
    torch.library.opcheck(gpu._weights_backward, (torch.randn(2, 4, 4, dtype=torch.float64), flags))


def test_vmap_of_gradients() -> None:
    inputs = [x.detach().to(DEVICE) for x in STACK.random_inputs(3, 4, 2)]
    sum_of = partial(gpu.stratification_stack_triton, read_strength=0.7)

    def loss(pop: Tensor, push: Tensor, values: Tensor) -> Tensor:
        return sum_of(pop[None], push[None], values[None]).square().sum()

    each = torch.func.vmap(torch.func.grad(loss))(*inputs)
    leaf = inputs[0].cpu().requires_grad_()
    together = stratification_stack(leaf, *(x.cpu() for x in inputs[1:]), read_strength=0.7).square().sum()
    assert_normwise_close(each.cpu(), torch.autograd.grad(together, leaf)[0], 1e-12)
