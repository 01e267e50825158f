"""The nondeterministic stack as an operator: dtypes, layouts, memory, devices, and what autograd asks for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from tests.helpers import assert_normwise_close
from tests.ops.nondeterministic.inputs import ARGUMENTS, assert_equal_results, choose, gradients, random_inputs


@pytest.mark.parametrize("std", [1.0, 5.0, 10.0, 30.0])
def test_float32_accuracy(std: float, backend: str) -> None:
    inputs = random_inputs(2, 14, 2, 3, 4, std=std)
    narrow = [x.detach().float().requires_grad_() for x in inputs]
    wide = [x.detach().double().requires_grad_() for x in narrow]
    readings = nondeterministic_stack(*narrow, backend=backend)
    expected = nondeterministic_stack(*wide, backend="reference")
    cotangent = torch.randn_like(readings)
    tolerance = 1e-5 if backend == "native" else 1e-6
    assert readings.dtype == torch.float32
    assert_normwise_close(readings, expected, tolerance)
    for name, actual, wanted in zip(
        ARGUMENTS,
        gradients(readings, narrow, cotangent),
        gradients(expected, wide, cotangent.double()),
        strict=True,
    ):
        assert actual.dtype == torch.float32
        assert_normwise_close(actual, wanted, tolerance, name)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_precision_does_not_depend_on_dtype_or_autocast(dtype: torch.dtype, autocast: bool, backend: str) -> None:
    inputs = random_inputs(2, 9, 2, 3, 4, dtype=dtype)
    # The compiled kernels compute in float32 where that is precise enough, the others always in float64.
    inside = torch.float32 if backend == "native" else torch.float64
    wide = [x.detach().to(inside).requires_grad_() for x in inputs]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        readings = nondeterministic_stack(*inputs, backend=backend)
        cotangent = torch.randn_like(readings)
        actual_gradients = gradients(readings, inputs, cotangent)
    expected = nondeterministic_stack(*wide, backend=backend)
    assert readings.dtype == dtype
    assert torch.equal(readings, expected.to(dtype))
    for actual, wanted in zip(actual_gradients, gradients(expected, wide, cotangent.to(inside)), strict=True):
        assert actual.dtype == dtype
        assert torch.equal(actual, wanted.to(dtype))


def test_non_contiguous_arguments(backend: str) -> None:
    inputs = random_inputs(3, 7, 2, 3, 4, batched_bottom=True)
    strided = [x.detach().transpose(0, 1).contiguous().transpose(0, 1).requires_grad_() for x in inputs]
    assert not any(x.is_contiguous() for x in strided)
    readings = nondeterministic_stack(*strided, backend=backend)
    expected = nondeterministic_stack(*inputs, backend=backend)
    assert_normwise_close(readings, expected, 1e-12)
    cotangent = torch.randn_like(expected)
    strided_cotangent = cotangent.transpose(0, 3).contiguous().transpose(0, 3)
    for actual, wanted in zip(
        gradients(readings, strided, strided_cotangent), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-12)


@pytest.mark.parametrize("needs", range(5), ids=ARGUMENTS)
def test_gradient_of_one_argument_alone(needs: int, backend: str) -> None:
    inputs = random_inputs(2, 6, 2, 2, 3)
    readings = nondeterministic_stack(*inputs, backend=backend)
    cotangent = torch.randn_like(readings)
    expected = gradients(readings, inputs, cotangent)[needs]
    alone = [x.detach().requires_grad_(i == needs) for i, x in enumerate(inputs)]
    (actual,) = gradients(nondeterministic_stack(*alone, backend=backend), [alone[needs]], cotangent)
    assert_normwise_close(actual, expected, 1e-12)


def test_gradient_may_be_taken_twice_if_the_graph_is_kept(backend: str) -> None:
    inputs = random_inputs(2, 6, 2, 2, 3)
    loss = nondeterministic_stack(*inputs, backend=backend).square().sum()
    first = torch.autograd.grad(loss, inputs, retain_graph=True)
    for one, other in zip(first, torch.autograd.grad(loss, inputs), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("name", ["pytorch", "pytorch-exponents"])
def test_saved_tensor_hooks_see_the_inner_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = random_inputs(2, 20, 2, 2, 3)
    backend = choose(name, monkeypatch)
    cotangent = torch.randn(2, 20, 2, 2, 3, dtype=torch.float64)
    expected = gradients(nondeterministic_stack(*inputs, backend=backend), inputs, cotangent)
    saved: list[Tensor] = []

    def pack(x: Tensor) -> int:
        saved.append(x.clone())
        return len(saved) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, saved.__getitem__):
        readings = nondeterministic_stack(*inputs, backend=backend)
    assert sum(x.numel() for x in saved) > 2 * (20 * 21 / 2) * (4 * 4 + 4 * 2)
    for actual, wanted in zip(gradients(readings, inputs, cotangent), expected, strict=True):
        assert torch.equal(actual, wanted)


def test_second_derivative_is_refused(fast_backend: str) -> None:
    inputs = random_inputs(2, 6, 2, 2, 3)
    readings = nondeterministic_stack(*inputs, backend=fast_backend)
    (gradient,) = torch.autograd.grad(readings.square().sum(), inputs[0], create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|only backend='reference' has second derivatives"):
        gradient.sum().backward()


@pytest.mark.usefixtures("poisoned_memory")
def test_no_memory_is_read_before_it_is_written(fast_backend: str) -> None:
    assert_equal_results(random_inputs(2, 9, 2, 3, 4, masked=0.3), fast_backend)


def test_arguments_stay_as_they_are(backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(2, 6, 2, 2, 3)]
    copies = [x.clone() for x in inputs]
    nondeterministic_stack(*inputs, backend=backend)
    for x, copy in zip(inputs, copies, strict=True):
        assert torch.equal(x, copy)


def test_auto_is_a_fast_backend() -> None:
    inputs = random_inputs(2, 6, 2, 2, 3)
    assert_normwise_close(nondeterministic_stack(*inputs), nondeterministic_stack(*inputs, backend="reference"), 1e-12)
    with pytest.raises(ValueError, match=r"nondeterministic_stack: backend must be one of .*'pytorch'.*'torch'"):
        nondeterministic_stack(*inputs, backend="torch")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu(backend: str) -> None:
    inputs = random_inputs(3, 20, 2, 3, 4)
    on_device = [x.detach().cuda().requires_grad_() for x in inputs]
    expected = nondeterministic_stack(*inputs, backend="reference")
    readings = nondeterministic_stack(*on_device, backend=backend)
    cotangent = torch.randn_like(expected)
    assert readings.is_cuda
    assert_normwise_close(readings, expected, 1e-12)
    for actual, wanted in zip(
        gradients(readings, on_device, cotangent.cuda()), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-9)
