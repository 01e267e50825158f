"""fairseq's Adam updates all parameters at once as it would one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from fairseq.optim.adam import Adam
from torch import Tensor

pytestmark = pytest.mark.usefixtures("shims")

one_by_one = Adam.step.__wrapped__


def parameters(dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    sizes = ((3, 5), (7,), (), (2, 40), (0,))
    return [torch.randn(size, generator=generator, dtype=dtype).requires_grad_() for size in sizes]


def set_gradients(these: Sequence[Tensor], update: int) -> None:
    """The third one has no gradient in the second update, so that it counts one update less."""
    generator = torch.Generator().manual_seed(update)
    for number, parameter in enumerate(these):
        gradient = torch.randn(parameter.shape, generator=generator, dtype=torch.float64).to(parameter.dtype)
        parameter.grad = None if (number, update) == (2, 1) else gradient


def states(optimizer: Adam) -> list[Any]:
    return [*optimizer.state_dict()["state"].values()]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_equal_to_rounding(dtype: torch.dtype, amsgrad: bool, weight_decay: float) -> None:
    """A large epsilon, so that its place in the equation matters."""
    options: dict[str, Any] = {"lr": 0.1, "eps": 0.5, "betas": (0.8, 0.95)}
    options |= {"weight_decay": weight_decay, "amsgrad": amsgrad}
    one, other = parameters(dtype), parameters(dtype)
    fused, plain = Adam(one, **options), Adam(other, **options)
    for update in range(6):
        for optimizer, these in ((fused, one), (plain, other)):
            set_gradients(these, update)
            optimizer.param_groups[0]["lr"] *= 0.9
        before = [p.detach().clone() for p in one]
        assert fused.step() is None
        one_by_one(plain)
        assert not torch.equal(before[0], one[0])
        torch.testing.assert_close(one, other)
        torch.testing.assert_close(states(fused), states(plain))
    assert [state["step"] for state in states(fused)] == [6, 6, 5, 6, 6]


def transposed() -> list[Tensor]:
    """A parameter whose gradient has another memory layout."""
    return [torch.ones(40, 70).t().requires_grad_()]


@pytest.mark.parametrize("make", [lambda: parameters(torch.bfloat16), transposed], ids=["bfloat16", "transposed"])
def test_others_are_updated_one_by_one(make: Callable[[], list[Tensor]]) -> None:
    one, other = make(), make()
    fused, plain = Adam(one, lr=0.1), Adam(other, lr=0.1)
    for optimizer, these, step in ((fused, one, Adam.step), (plain, other, one_by_one)):
        for update in (2, 3):
            set_gradients(these, update)
            step(optimizer)
    for parameter, expected in zip(one, other, strict=True):
        assert torch.equal(parameter, expected)


def test_a_closure_is_called_once() -> None:
    parameter = torch.ones(2, requires_grad=True)
    calls: list[None] = []

    def closure() -> Tensor:
        calls.append(None)
        parameter.grad = torch.ones(2)
        return parameter.sum()

    assert Adam([parameter]).step(closure) == 2
    assert len(calls) == 1
