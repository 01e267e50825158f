"""The superposition stack as an operator: dtypes, layouts, memory, devices, threads, and what autograd asks for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import superposition_stack
from fairseq_stack.ops.superposition import native
from tests.helpers import assert_normwise_close, threads
from tests.ops.superposition.inputs import gradients, initial_state, random_inputs


@pytest.mark.parametrize("needs", ["actions", "values"])
@pytest.mark.parametrize("size", [2, 20], ids=["short-vectors", "long-vectors"])
def test_gradient_of_one_argument_alone(needs: str, size: int, backend: str) -> None:
    actions, values = random_inputs(2, 9, size)
    cotangent = torch.randn_like(values)
    both = gradients(superposition_stack(actions, values, backend=backend), (actions, values), cotangent)
    if needs == "actions":
        readings = superposition_stack(actions, values.detach(), backend=backend)
        (alone,) = gradients(readings, (actions,), cotangent)
        assert_normwise_close(alone, both[0], 1e-12)
    else:
        readings = superposition_stack(actions.detach(), values, backend=backend)
        (alone,) = gradients(readings, (values,), cotangent)
        assert_normwise_close(alone, both[1], 1e-12)


@pytest.mark.parametrize("size", [2, 20], ids=["short-vectors", "long-vectors"])
@pytest.mark.parametrize("which", [0, 1], ids=["actions", "values"])
def test_second_derivative_is_refused(size: int, which: int, fast_backend: str) -> None:
    inputs = random_inputs(2, 6, size)
    readings = superposition_stack(*inputs, backend=fast_backend)
    (gradient,) = torch.autograd.grad(readings.square().sum(), inputs[which], create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|only backend='reference' has second derivatives"):
        gradient.sum().backward()


def test_gradient_may_be_taken_twice_if_the_graph_is_kept(backend: str) -> None:
    actions, values = random_inputs(2, 8, 3)
    loss = superposition_stack(actions, values, backend=backend).square().sum()
    first = torch.autograd.grad(loss, actions, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(loss, actions)[0])


def test_float32_accuracy(backend: str) -> None:
    inputs = random_inputs(2, 100, 10)
    narrow = [x.detach().float().requires_grad_() for x in inputs]
    cotangent = torch.randn_like(inputs[1])
    expected = superposition_stack(*inputs, backend="reference")
    readings = superposition_stack(*narrow, backend=backend)
    assert readings.dtype == torch.float32
    assert_normwise_close(readings, expected, 1e-6)
    for actual, wanted in zip(
        gradients(readings, narrow, cotangent.float()), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("autocast", [False, True], ids=["plain", "autocast"])
def test_half_precision_is_computed_in_float32(dtype: torch.dtype, autocast: bool, backend: str) -> None:
    inputs = [x.detach().to(dtype).requires_grad_() for x in random_inputs(2, 30, 40)]
    wide = [x.detach().float().requires_grad_() for x in inputs]
    cotangent = torch.randn(2, 30, 40).to(dtype)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        readings = superposition_stack(*inputs, backend=backend)
        actual_gradients = gradients(readings, inputs, cotangent)
    expected = superposition_stack(*wide, backend=backend)
    assert readings.dtype == dtype
    assert torch.equal(readings, expected.to(dtype))
    for actual, wanted in zip(actual_gradients, gradients(expected, wide, cotangent.float()), strict=True):
        assert actual.dtype == dtype
        assert torch.equal(actual, wanted.to(dtype))


def test_autocast_does_not_lower_the_precision_of_float32() -> None:
    actions, values = random_inputs(2, 30, 40, dtype=torch.float32)
    cotangent = torch.randn_like(values)
    expected = superposition_stack(actions, values)
    wanted_gradients = gradients(expected, (actions, values), cotangent)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        readings = superposition_stack(actions, values)
        actual_gradients = gradients(readings, (actions, values), cotangent)
        _, state = initial_state(values).step(actions[:, 0], values[:, 0])
    assert torch.equal(readings, expected)
    assert state.elements.dtype == torch.float32
    for actual, wanted in zip(actual_gradients, wanted_gradients, strict=True):
        assert_normwise_close(actual, wanted, 1e-6)


@pytest.mark.parametrize("size", [4, 20], ids=["short-vectors", "long-vectors"])
def test_non_contiguous_arguments(size: int, backend: str) -> None:
    actions, values = (x.detach() for x in random_inputs(3, 9, size))
    cotangent = torch.randn_like(values)
    strided = [x.transpose(0, 2).contiguous().transpose(0, 2).requires_grad_() for x in (actions, values)]
    assert not any(x.is_contiguous() for x in strided)
    inputs = [x.requires_grad_() for x in (actions, values)]
    readings = superposition_stack(*strided, backend=backend)
    expected = superposition_stack(*inputs, backend=backend)
    assert_normwise_close(readings, expected, 1e-12)
    strided_cotangent = cotangent.transpose(0, 1).contiguous().transpose(0, 1)
    for actual, wanted in zip(
        gradients(readings, strided, strided_cotangent), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-12)


def test_arguments_broadcast_over_the_batch_by_expand(backend: str) -> None:
    actions, values = random_inputs(1, 6, 9)
    readings = superposition_stack(actions.expand(3, -1, -1), values.expand(3, -1, -1), backend=backend)
    expected = superposition_stack(actions, values, backend=backend).expand(3, -1, -1)
    assert_normwise_close(readings, expected, 1e-12)
    for actual, wanted in zip(
        gradients(readings, (actions, values), torch.ones_like(readings)),
        gradients(expected, (actions, values), torch.ones_like(readings)),
        strict=True,
    ):
        assert_normwise_close(actual, wanted, 1e-12)


def test_long_sequences_keep_only_the_stacks_between_segments(fast_backend: str) -> None:
    actions, values = random_inputs(1, 400, 20, dtype=torch.float32)
    kept = 0

    def count(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
        superposition_stack(actions, values, backend=fast_backend)
    whole_walk = 400 * 200 * 20 * 4
    assert kept < whole_walk / 10


@pytest.mark.parametrize("backend", ["reference", "pytorch"])
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu(backend: str) -> None:
    inputs = random_inputs(3, 20, 30)
    on_device = [x.detach().cuda().requires_grad_() for x in inputs]
    cotangent = torch.randn_like(inputs[1])
    expected = superposition_stack(*inputs, backend=backend)
    readings = superposition_stack(*on_device, backend=backend)
    assert readings.is_cuda
    assert_normwise_close(readings, expected, 1e-12)
    for actual, wanted in zip(
        gradients(readings, on_device, cotangent.cuda()), gradients(expected, inputs, cotangent), strict=True
    ):
        assert_normwise_close(actual, wanted, 1e-12)


@pytest.mark.usefixtures("compiled")
def test_auto_is_the_compiled_backend_on_the_cpu() -> None:
    inputs = random_inputs(2, 20, 7)
    readings = superposition_stack(*inputs)
    assert torch.equal(readings, superposition_stack(*inputs, backend="native"))
    function = getattr(readings.grad_fn, "_forward_cls")  # noqa: B009  (an attribute that types do not have)
    assert function.__module__ == "fairseq_stack.ops._operators"


@pytest.mark.usefixtures("compiled", "poisoned_memory")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("length", "limit"), [(0, 0), (9, 9), (9, 2)])
def test_operators_are_what_pytorch_demands(length: int, limit: int, dtype: torch.dtype) -> None:
    actions, values = random_inputs(2, length, 5, dtype=dtype)
    torch.library.opcheck(native._stack, (actions, values, limit))
    gradients_of = torch.randn_like(values), actions.detach(), values.detach()
    torch.library.opcheck(native._stack_backward, (*gradients_of, limit))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("limit", [None, 2])
def test_compiled_graph_without_breaks(limit: int | None) -> None:
    def loss(actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions, values, depth_limit=limit).square().sum()

    compiled_loss = torch.compile(loss, fullgraph=True, backend="aot_eager", dynamic=True)
    for length in (3, 7):
        inputs = random_inputs(2, length, 4)
        actual = torch.autograd.grad(compiled_loss(*inputs), inputs)
        for one, other in zip(actual, torch.autograd.grad(loss(*inputs), inputs), strict=True):
            assert_normwise_close(one, other, 1e-12)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("count", [2, 3, 8])
def test_threads_change_nothing(count: int) -> None:
    inputs = random_inputs(5, 40, 7)
    cotangent = torch.randn_like(inputs[1])

    def results() -> list[Tensor]:
        readings = superposition_stack(*inputs, backend="native")
        return [readings, *gradients(readings, inputs, cotangent)]

    with threads(1):
        one = results()
    with threads(count):
        many = results()
    for x, y in zip(one, many, strict=True):
        assert torch.equal(x, y)


def test_a_stack_that_may_hold_nothing() -> None:
    with pytest.raises(ValueError, match=r"^depth_limit: expected at least 1, got 0$"):
        superposition_stack(*random_inputs(1, 2, 3), depth_limit=0)
