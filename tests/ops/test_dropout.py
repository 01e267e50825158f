"""Dropout by the compiled kernels: its distribution, its seeds and its gradient."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from fairseq_stack.modules.dropout import Dropout
from fairseq_stack.ops import _native, draws_factors, dropout
from fairseq_stack.ops.dropout import BLOCK
from tests.helpers import threads, use_instruction_set

MANY = 3 * BLOCK + 5
each_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


@pytest.fixture(autouse=True)
def kernels(compiled: None) -> None:
    assert draws_factors(torch.ones(1))


def dropped(p: float, count: int = MANY, dtype: torch.dtype = torch.float32) -> Tensor:
    return dropout(torch.ones(count, dtype=dtype), p) == 0


@each_dtype
@pytest.mark.parametrize("p", [0.001, 0.1, 0.5, 0.9])
def test_each_element_is_zero_or_scaled(p: float, dtype: torch.dtype) -> None:
    x = torch.randn(MANY, dtype=dtype)
    y = dropout(x, p)
    assert y.dtype == dtype
    zero = y == 0
    torch.testing.assert_close(y[~zero], x[~zero] / (1 - p))
    assert abs(zero.sum() - p * MANY) < 5 * math.sqrt(MANY * p * (1 - p))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_elements_are_independent(p: float) -> None:
    """Whether two elements are dropped, at small distances, at the number of streams, and at the size of a block."""
    zero = dropped(p, 2**20).double() - p
    deviation = p * (1 - p) / math.sqrt(2**20)
    for distance in (*range(1, 70), BLOCK):
        assert abs((zero[distance:] * zero[:-distance]).mean()) < 5 * deviation, distance


def test_every_position_is_dropped_as_often() -> None:
    """Chi-squared over the positions of a block, in calls with seeds of their own; about 6 deviations."""
    calls, positions, p = 4000, 64, 0.25
    counts = sum(dropped(p, positions).double() for _ in range(calls))
    statistic = float(((counts - calls * p) ** 2 / (calls * p * (1 - p))).sum())
    assert abs(statistic - positions) < 6 * math.sqrt(2 * positions)


def test_a_seed_reproduces_it() -> None:
    torch.manual_seed(3)
    first, second = dropped(0.3), dropped(0.3)
    assert not torch.equal(first, second)
    torch.manual_seed(3)
    assert torch.equal(dropped(0.3), first)
    assert torch.equal(dropped(0.3), second)


@each_dtype
def test_threads_and_instruction_sets_do_not_matter(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = []
    for name in _native.required_library().instruction_sets:
        use_instruction_set(name, monkeypatch)
        for count in (1, 2):
            torch.manual_seed(3)
            with threads(count):
                masks.append(dropped(0.3, 10 * BLOCK, dtype))
    torch.manual_seed(3)
    masks.append(dropped(0.3, 10 * BLOCK, torch.float32))
    for mask in masks[1:]:
        assert torch.equal(mask, masks[0])


@each_dtype
def test_the_gradient_has_the_same_mask(dtype: torch.dtype) -> None:
    x = torch.randn(7, 33, 5, dtype=dtype).transpose(0, 2).requires_grad_()
    cotangent = torch.randn_like(x)
    y = dropout(x, 0.4)
    (gradient,) = torch.autograd.grad(y, x, cotangent)
    assert torch.equal(gradient == 0, y == 0)
    torch.testing.assert_close(gradient, torch.where(y == 0, 0, cotangent / (1 - 0.4)))


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_draws_the_same_mask(reentrant: bool) -> None:
    x = torch.randn(50, 50, requires_grad=True)
    y = checkpoint(dropout, x, 0.5, use_reentrant=reentrant)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad == 0, y == 0)


def test_the_default_device_does_not_matter() -> None:
    x = torch.ones(MANY)
    torch.manual_seed(1)
    expected = dropout(x, 0.5)
    torch.manual_seed(1)
    with torch.device("meta"):
        assert dropout(x, 0.5).equal(expected)


def test_in_place() -> None:
    x = torch.ones(MANY)
    assert dropout(x, 0.5, inplace=True) is x
    assert x.unique().tolist() == [0, 2]


def test_nothing_to_drop() -> None:
    x = torch.randn(5)
    state = torch.get_rng_state()
    assert dropout(x, 0.5, training=False) is x
    assert torch.equal(dropout(x, 0.0), x)
    assert torch.equal(torch.get_rng_state(), state)
    assert dropout(x[:0], 0.5).shape == (0,)


def test_extreme_probabilities() -> None:
    assert dropped(1.0).all()
    assert dropped(1 - 2**-40).all()
    assert not dropped(2**-40).any()
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1"):
            dropout(torch.ones(2), p)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_other_types_are_dropped_by_pytorch(dtype: torch.dtype) -> None:
    x = torch.ones(MANY, dtype=dtype)
    torch.manual_seed(1)
    y = dropout(x, 0.5)
    torch.manual_seed(1)
    assert torch.equal(y, functional.dropout(x, 0.5))


def test_without_the_kernels_it_is_that_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRSEQ_STACK_NATIVE", "0")
    _native.availability.cache_clear()
    try:
        torch.manual_seed(1)
        y = dropout(torch.ones(MANY), 0.5)
    finally:
        monkeypatch.undo()
        _native.availability.cache_clear()
    torch.manual_seed(1)
    assert torch.equal(y, functional.dropout(torch.ones(MANY), 0.5))


def test_vmap_draws_as_pytorch_is_told_to() -> None:
    x = torch.ones(2, MANY)
    one, other = torch.vmap(lambda row: dropout(row, 0.5), randomness="different")(x)
    assert not torch.equal(one, other)
    with pytest.raises(RuntimeError, match="random"):
        torch.vmap(lambda row: dropout(row, 0.5))(x)


def test_the_module_has_the_same_masks() -> None:
    module, x = Dropout(0.3), torch.ones(MANY)
    torch.manual_seed(1)
    y = module(x)
    torch.manual_seed(1)
    assert torch.equal(y, dropout(x, 0.3))
    assert module.eval()(x) is x
    assert Dropout(0.3, inplace=True)(x) is x


def test_tracing_keeps_the_operator() -> None:
    traced = torch.jit.trace(lambda x: dropout(x, 0.5), torch.ones(3), check_trace=False)
    assert "dropout" in str(traced.graph)
