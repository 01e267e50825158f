"""The Triton kernels: on a GPU, or else in Triton's interpreter (``tests/conftest.py`` sets ``TRITON_INTERPRET``).

The interpreter takes milliseconds for an operation, so the sequences are short, and tiles have four rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from fairseq_stack.ops.nondeterministic import WITH_LIMITED_MEMORY, gpu
from tests.helpers import assert_normwise_close, hostile
from tests.ops.gpus import DEVICE
from tests.ops.nondeterministic.adversarial import adversarial
from tests.ops.nondeterministic.inputs import random_inputs

pytestmark = pytest.mark.triton

# n, Q, S, m; n + 2 rows are less than a tile, one tile, one row more, ..., four tiles
SIZES = [(1, 1, 1, 1), (2, 2, 1, 2), (3, 1, 3, 1), (4, 2, 2, 3), (5, 3, 1, 2), hostile(14, 2, 2, 1)]


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_tile_size", lambda length, top: 4)


def stack(inputs: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Readings and W of the kernels, on the CPU."""
    push, replace, pop, values, bottom = (x.to(DEVICE) for x in inputs)
    found = gpu.nondeterministic_stack_triton(push, replace, pop, values, bottom, return_weights=True)
    assert isinstance(found, tuple)
    return found[0].cpu(), found[1].cpu()


def windowed_stack(inputs: Sequence[Tensor], window: int) -> tuple[Tensor, Tensor]:
    """The same of a stack with limited memory."""
    push, replace, pop, values, bottom = (x.to(DEVICE) for x in inputs)
    compute = WITH_LIMITED_MEMORY["triton"].compute
    readings, weights = compute(push, replace, pop, values, bottom, return_weights=True, window=window)
    return readings.cpu(), weights.cpu()


def assert_as_reference(inputs: Sequence[Tensor], tolerance: float = 1e-9, window: int | None = None) -> None:
    """Readings, weights, and the gradients of both, beside the largest, or beside 1 if that is larger."""
    found = stack(inputs) if window is None else windowed_stack(inputs, window)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    expected = nondeterministic_stack(*wide, backend="reference", return_weights=True, window=window)
    cotangents = [torch.randn_like(x) for x in expected]
    of_found, of_expected = (
        torch.autograd.grad([(x * c).sum() for x, c in zip(results, cotangents, strict=True)], leaves)
        for results, leaves in ((found, inputs), (expected, wide))
    )
    actual, wanted = (
        [x.detach() for x in (*results, *of)] for results, of in ((found, of_found), (expected, of_expected))
    )
    for one, other in zip(actual, wanted, strict=True):
        assert_normwise_close(one, other, tolerance * max(1.0, 1 / (float(other.abs().max()) or 1)))


def inexact(inputs: Sequence[Tensor]) -> list[bool]:
    """For which sequences float64 is found not to be precise enough."""
    logits = gpu.join_transitions(*inputs[:3]).detach().to(DEVICE)
    flags: list[bool] = gpu._weights(logits, inputs[0].shape[2], None)[-1].tolist()
    return flags


@pytest.mark.parametrize(("length", "num_states", "num_symbols", "size"), SIZES)
def test_values_and_gradients(length: int, num_states: int, num_symbols: int, size: int) -> None:
    assert_as_reference(random_inputs(2, length, num_states, num_symbols, size, batched_bottom=True))


@pytest.mark.parametrize(
    ("length", "window"),
    [(1, 1), (2, 2), (9, 8), (14, 4), *(hostile(*case) for case in ((14, 1), (14, 5), (14, 13), (18, 3)))],
)
def test_limited_memory(length: int, window: int) -> None:
    """Windows that end in each row of a tile, and before and after its last."""
    assert_as_reference(random_inputs(1, length, 2, 1, 2), window=window)


def test_limited_memory_where_float64_is_not_enough() -> None:
    inputs = random_inputs(2, 7, 1, 2, 1)
    with torch.no_grad():
        inputs[0][1] *= 500
    assert_as_reference(inputs, window=5)


def test_limited_memory_takes_memory_in_proportion_to_the_length() -> None:
    sizes = [gpu._sizes(torch.empty(1, length, 2, 5), 1, 6) for length in (100, 200)]
    for name in ("cells", "tiles"):
        assert getattr(sizes[1], name) < 2.1 * getattr(sizes[0], name)
    assert sizes[0].width == sizes[1].width


def test_longer_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "_tile_size", lambda length, top: 8)
    assert_as_reference(random_inputs(1, 17, 1, 2, 2))


@pytest.mark.parametrize(("std", "masked"), [(1.0, 0.3), hostile(1.0, 0.8), hostile(10.0, 0.0), (20.0, 0.0)])
def test_log_weights_that_are_forbidden_or_far_apart(std: float, masked: float) -> None:
    inputs = random_inputs(1, 8, 2, 1, 1, std=std, masked=masked)
    assert not any(inexact(inputs))
    assert_as_reference(inputs)


@pytest.mark.parametrize(("kind", "cost"), [hostile("hindsight", 30.0), ("masked-mirror", 30.0), ("stuck", 400.0)])
def test_every_finite_log_weight_is_exact(kind: str, cost: float) -> None:
    inputs = adversarial(kind, cost, 9, 1, 2)
    assert all(inexact(inputs)) == (cost > 100)
    assert_as_reference(inputs)


def test_the_kernels_notice_what_they_cannot_hold() -> None:
    """The log weights of each step are near enough, but the inner weights of some steps are not."""
    inputs = adversarial("masked-mirror", 60.0, 9, 1, 2)
    relative = gpu.relative_to_largest(gpu.join_transitions(*inputs[:3]))
    assert (gpu.spread_of(relative).range < gpu.WIDEST_RANGE).all()
    assert all(inexact(inputs))
    assert_as_reference(inputs)


def test_derivatives_that_grow_where_no_run_passes() -> None:
    """Symbol 1 is never on the stack. A derivative there is a large weight more in each step, until it is infinite."""
    inputs = random_inputs(1, 14, 1, 2, 1)
    with torch.no_grad():
        inputs[0][..., 1] = inputs[1][:, :, :, 0, :, 1] = -torch.inf
        inputs[1][:, :, :, 1, :, 1] = 60
    assert not any(inexact(inputs))
    assert_as_reference(inputs)


def test_log_weights_and_cotangents_of_any_memory_format() -> None:
    inputs = random_inputs(2, 6, 1, 2, 1)
    logits = gpu.join_transitions(*inputs[:3]).detach().to(DEVICE)
    permuted = logits.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert not permuted.is_contiguous()
    weights, *saved = gpu._weights(logits, 1, None)
    assert torch.equal(gpu._weights(permuted, 1, None)[0], weights)
    grad = torch.randn_like(weights)
    other = grad.transpose(0, 1).contiguous().transpose(0, 1)
    found, wanted = (gpu._weights_backward(x, logits, weights, *saved, 1, None) for x in (other, grad))
    assert torch.equal(found, wanted)


def test_only_what_needs_it_is_computed_again() -> None:
    inputs = random_inputs(3, 3, 1, 2, 1)
    with torch.no_grad():
        inputs[0][1] *= 500
    assert inexact(inputs) == [False, True, False]
    assert_as_reference(inputs)


@pytest.mark.parametrize("window", [None, hostile(1)])
def test_the_operators_are_well_formed(window: int | None) -> None:
    logits = gpu.join_transitions(*random_inputs(2, 2, 1, 2, 1)[:3]).detach().to(DEVICE).requires_grad_()
    torch.library.opcheck(gpu._weights, (logits, 1, window))
    weights, *saved = (x.detach() for x in gpu._weights(logits, 1, window))
    arguments = torch.randn_like(weights), logits.detach(), weights, *saved, 1, window
    torch.library.opcheck(gpu._weights_backward, arguments)


@pytest.mark.parametrize("window", [None, hostile(2)])
def test_torch_compile(window: int | None) -> None:
    inputs = [x.detach().to(DEVICE).requires_grad_() for x in random_inputs(1, 3, 1, 2, 2)]

    def loss(*arguments: Tensor) -> Tensor:
        if window is None:
            readings, _ = gpu.nondeterministic_stack_triton(*arguments, return_weights=False)
            return readings.square().sum()
        logits = gpu.join_transitions(*arguments[:3])
        vectors = torch.cat([arguments[4].expand(1, -1)[:, None], arguments[3]], 1)
        return gpu.windowed_readings_triton(logits, vectors, 1, window).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found, wanted = (torch.autograd.grad(compute(*inputs), inputs) for compute in (compiled, loss))
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


@pytest.mark.skipif(DEVICE.type == "cpu", reason="no CUDA device")
@pytest.mark.parametrize("window", [None, 5])
def test_a_cuda_graph_repeats_both_passes(window: int | None) -> None:
    def take(inputs: Sequence[Tensor]) -> list[Tensor]:
        readings = nondeterministic_stack(*inputs, backend="triton", window=window)
        return [readings, *torch.autograd.grad(readings.square().sum(), inputs)]

    fixed, other = ([x.detach().to(DEVICE).requires_grad_() for x in random_inputs(2, 20, 2, 2, 3)] for _ in range(2))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        take(fixed)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = take(fixed)
    with torch.no_grad():
        for x, y in zip(fixed, other, strict=True):
            x.copy_(y)
    graph.replay()
    for found, wanted in zip(results, take(other), strict=True):
        assert torch.equal(found, wanted)
