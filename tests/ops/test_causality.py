"""What is not finite reaches no reading of an earlier step, no gradient through one, and no other row of the batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_normwise_close
from tests.ops.stacks import NATIVE, ON_GPUS, STACKS, Way, ways

NOT_FINITE = [torch.nan, torch.inf, -torch.inf]
LONG = [("superposition", way) for way in NATIVE]  # the kernel follows components of vectors this short there


def spoil(inputs: list[Tensor], number: int, garbage: float, first: int) -> tuple[list[Tensor], Tensor]:
    """The inputs with garbage in row 0 of one of them from step ``first`` on; and where, a mask for that one."""
    where = torch.zeros_like(inputs[number], dtype=torch.bool)
    place: Any = {2: (), 3: (1,), 4: (0, 1), 5: (1, 2, 0), 6: (1, 2, 0)}[where.dim()]
    where[(0, slice(first, None), *place)] = True
    return [x.masked_fill(where, garbage) if i == number else x for i, x in enumerate(inputs)], where


def results_until(way: Way, inputs: list[Tensor], stop: int) -> tuple[Tensor, list[Tensor]]:
    """The readings, and the gradients of a loss that depends on them until step ``stop`` only."""
    leaves = [x.clone().requires_grad_() for x in inputs]
    readings = way.read(leaves)
    weights = torch.randn(readings[:, :stop].shape, generator=torch.Generator().manual_seed(0)).to(readings.dtype)
    gradients = torch.autograd.grad((readings[:, :stop] * weights).sum(), leaves, materialize_grads=True)
    return readings.detach(), list(gradients)


def check(way: Way, inputs: list[Tensor], number: int, garbage: float, first: int) -> None:
    spoilt, where = spoil(inputs, number, garbage, first)
    expected, wanted = results_until(way, inputs, first)
    readings, gradients = results_until(way, spoilt, first)
    assert torch.equal(readings[:, :first], expected[:, :first])
    assert torch.equal(readings[1:], expected[1:])
    for name, gradient, want in zip(way.stack.names, gradients, wanted, strict=True):
        assert torch.equal(gradient, want), name
    assert (gradients[number][where] == 0).all()
    name, after = way.stack.names[number], readings[0, first:]
    if name == "values":
        assert after[..., 1].isnan().all()
        assert not after[..., 0].isnan().any()
    else:
        assert after.isnan().all()


def inputs_of(way: Way, length: int, dtype: torch.dtype = torch.float32, masked: float = 0.0) -> list[Tensor]:
    inputs = [x.detach() for x in way.stack.random_inputs(2, length, dtype=dtype)]
    if masked:
        inputs[:3] = [x.masked_fill(torch.rand_like(x) < masked, -torch.inf) for x in inputs[:3]]
    return inputs


def check_all(way: Way, inputs: list[Tensor], first: int) -> None:
    """With each input in turn. A log weight of -inf is not garbage: it forbids a transition."""
    for number, name in enumerate(way.stack.names[: way.stack.num_stepped]):
        for garbage in NOT_FINITE:
            if garbage != -torch.inf or name == "values" or "bottom" not in way.stack.names:
                check(way, inputs, number, garbage, first)


@ways(triton=ON_GPUS)
def test_garbage_does_not_reach_back(way: Way) -> None:
    length = 21 if way.name.startswith(("pytorch", "native")) else 6
    if "amounts" not in way.id:  # a read strength concerns its step alone: test_items.py
        check_all(way, inputs_of(way, length), length * 2 // 3)
        if "bottom" in way.stack.names:
            check_all(way, inputs_of(way, length, masked=0.2), length * 2 // 3)


@pytest.mark.parametrize("way", LONG, indirect=True, ids="-".join)
def test_garbage_does_not_reach_back_in_long_sequences(way: Way) -> None:
    check_all(way, inputs_of(way, 300), 200)


@ways("nondeterministic", triton=False)
def test_bottom_that_is_not_a_number_concerns_all_readings_of_its_row(way: Way) -> None:
    inputs = inputs_of(way, 6)
    expected = way.read(inputs)
    inputs[4][0, 1] = torch.nan
    readings = way.read(inputs)
    assert readings[0, ..., 1].isnan().all()
    assert torch.equal(readings[1:], expected[1:])
    assert torch.equal(readings[..., 2:], expected[..., 2:])


@pytest.mark.parametrize("number", [0, 3], ids=["push", "values"])
def test_decoding_may_become_differentiable_after_garbage(number: int) -> None:
    """Columns of the compiled kernel are handed over to autograd with what is undefined in them."""
    stack = STACKS["nondeterministic"]
    inputs, _ = spoil([x.detach() for x in stack.random_inputs(2, 4)], number, torch.nan, 2)
    _, state = stack.step_through(stack.part(inputs, slice(3)), stack.begin(inputs))
    push, replace, pop, values, _ = inputs
    clean = values[:, 1].clone().requires_grad_()
    reading, _ = state.step(push[:, 1], replace[:, 1], pop[:, 1], clean)
    assert reading[0, ..., 1].isnan().all()
    assert reading[0].isnan().all() == (number == 0)
    (gradient,) = torch.autograd.grad(reading[1:].sum(), clean)
    assert gradient.isfinite().all()
    assert not gradient[0].any()


@pytest.mark.parametrize("way", [*LONG, *(("nondeterministic", way) for way in NATIVE)], indirect=True, ids="-".join)
def test_gradient_is_not_a_number_if_the_loss_is_not(way: Way) -> None:
    for length in (21, 300) if way.id.startswith("superposition") else (21,):
        inputs = inputs_of(way, length)
        spoilt, _ = spoil(inputs, way.stack.names.index("values"), torch.nan, 12)
        leaves = [x.requires_grad_() for x in spoilt]
        for gradient in torch.autograd.grad(way.read(leaves).sum(), leaves):
            assert gradient[0].isnan().all()
            assert gradient[1:].isfinite().all()


@pytest.mark.parametrize("way", [("nondeterministic", way) for way in NATIVE], indirect=True, ids="-".join)
def test_weights_of_the_readings_are_spoilt_with_them(way: Way) -> None:
    inputs, _ = spoil(inputs_of(way, 12), 1, torch.nan, 5)
    readings, weights = nondeterministic_stack(*inputs, backend="native", return_weights=True)
    clean = nondeterministic_stack(*(x[1:] for x in inputs), backend="native", return_weights=True)[1]
    assert weights[0, 5:].isnan().any(-1).any(-1).any(-1).all() and weights[0, :5].isfinite().all()
    assert_normwise_close(weights[1:], clean, 1e-6)
    assert readings[0, 5:].isnan().all()
