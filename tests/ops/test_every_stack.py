"""What holds for every stack and queue, whatever computes it: values, gradients, dtypes, layouts, and empty axes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.helpers import assert_agree, assert_normwise_close, each_golden_file, gradients, hostile, threads
from tests.ops.gpus import DEVICE
from tests.ops.stacks import ON_GPUS, STACKS, Way, ways

# Around the lengths at which segments, tiles, panels and the vectors of a processor end.
LENGTHS = (1, 2, 3, 7, 16, 17)
LENGTHS_IN_TRITON = LENGTHS if ON_GPUS else (1, 2, 5)


def golden_cases() -> Iterator[Any]:
    """Each golden file of a stack with each way to compute it; on GPUs the smallest files."""
    for name, stack in STACKS.items():
        for path in each_golden_file(*stack.golden).args[1] if stack.golden else ():
            for way in stack.ways:
                yield pytest.param(path, (name, way), id=f"{way}-{path.stem}")
            is_small = DEVICE.type == "cuda" or any(f"_n{length}_" in path.stem for length in (1, 2, 3, 8, 9))
            if stack.triton is not None and is_small:
                yield pytest.param(path, (name, "triton"), marks=pytest.mark.triton, id=f"triton-{path.stem}")


@pytest.mark.parametrize(("path", "way"), golden_cases(), indirect=["way"])
def test_golden_values_and_gradients(path: Path, way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[name]).requires_grad_() for name in way.stack.names]
    readings = way.read(inputs)
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    if "readings_strength_2" in golden and not way.steps:
        with_amounts = Way(f"{way.id.removesuffix(f'-{way.name}')}-amounts", way.name, monkeypatch)
        twice = with_amounts.read([*inputs, torch.full_like(inputs[0], 2)])
        assert_normwise_close(twice, golden["readings_strength_2"], 1e-9, "readings of strength 2")
    has_ties = "cotangent" not in golden  # Strengths that are used up exactly: the gradient is not unique.
    cotangent = torch.ones_like(readings) if has_ties else torch.tensor(golden["cotangent"])
    for name, gradient in zip(way.stack.names, gradients(readings, inputs, cotangent), strict=True):
        if has_ties:
            assert gradient.isfinite().all(), name
        else:
            assert_normwise_close(gradient, golden[f"grad_{name}"], 1e-9, name)


@ways(reference=False)
def test_values_and_gradients_are_those_of_the_reference(way: Way) -> None:
    for length in LENGTHS_IN_TRITON if way.on_gpus else LENGTHS:
        for size in (1, 5, 33) if length == 7 else (5,):
            inputs = way.stack.random_inputs(2, length, size)
            expected = way.stack.compute(*inputs, backend="reference")
            assert_agree(way.read(inputs), expected, inputs, 1e-12, way.stack.tolerance, names=way.stack.names)


@ways(ops=False, steps=False, triton=False)
def test_gradcheck_of_the_reference(way: Way) -> None:
    for length, size in ((1, 2), (4, 2)):
        inputs = way.stack.random_inputs(2, length, size)
        if "push" in way.stack.names and "replace" in way.stack.names:  # few inputs
            inputs = [*(x[:, :, :, :1] for x in inputs[:3]), *inputs[3:]]
            inputs[:2] = [x[..., :1] for x in inputs[:2]]
            inputs = [x.detach().requires_grad_() for x in inputs]
        assert torch.autograd.gradcheck(lambda *x: way.read(x), inputs, check_undefined_grad=False)


@ways(reference=False, triton=ON_GPUS)
def test_float32_accuracy(way: Way) -> None:
    length = 6 if way.on_gpus else 14 if "bottom" in way.stack.names else 50
    inputs = way.stack.random_inputs(2, length, dtype=torch.float32)
    wide = [x.detach().double().requires_grad_() for x in inputs]
    readings, expected = way.read(inputs), way.stack.compute(*wide, backend="reference")
    assert readings.dtype == torch.float32
    # Steps of items with strengths add up the strengths of all.
    tolerance = 1e-5 if way.stack.names[0] == "pop" and way.steps else 1e-6
    assert_agree(readings, expected, inputs, tolerance, 1e-5, wide=wide, names=way.stack.names)


# Four times the errors of this version: the standard deviation of log weights, and roundings of float32 and float64.
MOST_ROUNDINGS = {
    "superposition": [(1, 10, 10)],
    "stratification": [(1, 30, 80)],
    "queue": [(1, 25, 30)],
    "delta": [(1, 100, 190)],
    "pointer": [(1, 75, 75)],
    "nondeterministic": [(1, 40, 80), (3, 70, 200), (10, 8, 2400)],
}


@ways(reference=False, triton=False)
def test_errors_do_not_grow(way: Way) -> None:
    """The root mean square of the errors, relative to the root mean square of the values."""
    is_automaton = "bottom" in way.stack.names
    for std, *most in MOST_ROUNDINGS[way.id.split("-")[0]]:
        drawn = way.stack.draw(3, 12 if is_automaton else 40, 5)
        inputs = [x.mul(std if x.dim() > 3 else 1).float() for x in drawn]
        cotangent = torch.randn_like(way.stack.compute(*inputs, backend="reference"))
        results: list[list[Tensor]] = []
        for dtype in (torch.float64, torch.float32, torch.float64):
            leaves = [x.to(dtype).requires_grad_() for x in inputs]
            readings = way.read(leaves) if results else way.stack.compute(*leaves, backend="reference")
            results.append([readings.detach(), *gradients(readings, leaves, cotangent.to(dtype))])
        for computed, roundings in zip(results[1:], most, strict=True):
            for name, actual, exact in zip(("readings", *way.stack.names), computed, results[0], strict=True):
                rounding = torch.finfo(actual.dtype).eps / 2
                assert (actual - exact).norm() <= roundings * rounding * exact.norm(), f"{name}, {actual.dtype}"


@ways(triton=False)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_precision_does_not_depend_on_dtype_or_autocast(dtype: torch.dtype, way: Way) -> None:
    """Half precision is computed in float32 at least, and rounded in the end."""
    # The automaton is computed in float64, except by the compiled kernels where float32 is precise enough.
    in_float64 = "bottom" in way.stack.names and not way.name.startswith("native-")
    inside = torch.float64 if in_float64 else torch.float32
    inputs = way.stack.random_inputs(2, 9, dtype=dtype)
    wide = [x.detach().to(inside).requires_grad_() for x in inputs]
    expected = way.read(wide)
    cotangent = torch.randn_like(expected).to(dtype)
    wanted = gradients(expected, wide, cotangent.to(inside))
    for autocast in (False, True):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            readings = way.read(inputs)
        # Autograd's own backward passes are for outside of autocast.
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast and way.is_hand_written):
            computed = gradients(readings, inputs, cotangent)
        assert readings.dtype == dtype
        assert torch.equal(readings, expected.to(dtype))
        for actual, want in zip(computed, wanted, strict=True):
            assert actual.dtype == dtype
            assert torch.equal(actual, want.to(dtype))


@ways(triton=False)
def test_lock_of_autocast_is_left_alone(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaving a block of autocast takes a lock, which would be locked for ever in a child that is forked meanwhile."""
    monkeypatch.setattr(torch, "clear_autocast_cache", lambda: pytest.fail("takes the lock"))
    inputs = way.stack.random_inputs(2, 9)
    way.read(inputs).sum().backward()


@ways(triton=ON_GPUS)
def test_layouts_of_arguments_and_cotangents(way: Way) -> None:
    """Transposed in memory, and expanded over the batch."""
    inputs = way.stack.random_inputs(3, 5 if way.on_gpus else 9)
    strided = [x.detach().movedim(0, -1).contiguous().movedim(-1, 0).requires_grad_() for x in inputs]
    assert not any(x.is_contiguous() for x in strided if x.dim() > 1)
    expected = way.read(inputs)
    readings = way.read(strided)
    assert_normwise_close(readings, expected, 1e-12)
    cotangent = torch.randn_like(expected)
    strided_cotangent = cotangent.transpose(0, 1).contiguous().transpose(0, 1)
    computed, wanted = gradients(readings, strided, strided_cotangent), gradients(expected, inputs, cotangent)
    for name, actual, want in zip(way.stack.names, computed, wanted, strict=True):
        assert_normwise_close(actual, want, 1e-12, name)
    one = [x.detach()[:1].requires_grad_() for x in inputs]
    expanded = way.read([x.expand(3, *x.shape[1:]) for x in one])
    assert_agree(expanded, way.read(one).expand(3, *expected.shape[1:]), one, 1e-12, way.stack.tolerance)


@ways(triton=ON_GPUS)
def test_gradient_of_one_argument_alone(way: Way) -> None:
    inputs = way.stack.random_inputs(2, 6, 3)
    readings = way.read(inputs)
    cotangent = torch.randn_like(readings)
    both = gradients(readings, inputs, cotangent)
    for number, name in enumerate(way.stack.names):
        alone = [x.detach().requires_grad_(i == number) for i, x in enumerate(inputs)]
        (gradient,) = gradients(way.read(alone), [alone[number]], cotangent)
        assert_normwise_close(gradient, both[number], 1e-12, name)


@ways(triton=ON_GPUS)
def test_a_graph_is_differentiated_several_times_and_arguments_stay(way: Way) -> None:
    inputs = way.stack.random_inputs(2, 6, 3)
    copies = [x.detach().clone() for x in inputs]
    loss = way.read(inputs).square().sum()
    first = [x.clone() for x in torch.autograd.grad(loss, inputs, retain_graph=True)]
    assert all(map(torch.equal, first, torch.autograd.grad(loss, inputs)))
    assert all(map(torch.equal, copies, inputs))


@ways()
def test_empty_axes(way: Way) -> None:
    for batch_size, length in ((2, 0), (0, 3), (0, 0)):
        inputs = way.stack.random_inputs(batch_size, length, 4)
        readings = way.read(inputs)
        assert readings.shape == way.stack.compute(*inputs, backend="reference").shape
        assert readings.shape[:2] == (batch_size, length) and readings.size(-1) == 4
        for x, gradient in zip(inputs, gradients(readings, inputs, torch.ones_like(readings)), strict=True):
            assert gradient.shape == x.shape
            assert not gradient.any()


@ways(reference=False, triton=False)
@pytest.mark.parametrize("repeats", [1, hostile(25)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_change_nothing(dtype: torch.dtype, repeats: int, way: Way) -> None:
    """To the bit, but for readings of the kernels for automata, for which PyTorch multiplies W with the vectors."""
    if "pytorch" in way.name:
        pytest.skip("PyTorch's products depend on the number of threads")
    inputs = way.stack.random_inputs(5, 20, dtype=dtype)
    if "bottom" in way.stack.names:
        inputs[1].data[1] *= 10  # which takes float64
    results: list[Tensor] = []
    for count in (1, 2, 3, 8) * repeats:
        with threads(count):
            readings = way.read(inputs)
            now = [readings, *gradients(readings, inputs, torch.ones_like(readings))]
        results = results or now
        for name, one, other in zip(("readings", *way.stack.names), now, results, strict=True):
            # tests/ops/nondeterministic/test_crew.py compares the bits of W.
            assert torch.equal(one, other) or way.id.startswith("nondeterministic-native"), name
            assert_normwise_close(one, other, 1e-12 if dtype == torch.float64 else 1e-6, name)


RARE = ("-amounts", "-clamped", "-limited", "queue", "pointer")


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", [hostile(name) if name.endswith(RARE) else name for name in STACKS])
def test_compiled_graph_without_breaks(name: str) -> None:
    stack = STACKS[name]
    torch._dynamo.reset()

    def loss(*inputs: Tensor) -> Tensor:
        return stack.compute(*inputs).square().sum()

    compiled_loss = torch.compile(loss, fullgraph=True, backend="aot_eager")  # the second length makes it dynamic
    for length in (3, 7):
        inputs = stack.random_inputs(2, length, 4)
        actual, wanted = (torch.autograd.grad(compute(*inputs), inputs) for compute in (compiled_loss, loss))
        for one, other in zip(actual, wanted, strict=True):
            assert_normwise_close(one, other, 1e-12)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("name", STACKS)
def test_auto_is_the_fastest_backend_of_the_cpu(name: str) -> None:
    stack = STACKS[name]
    fastest = "native" if any(way.startswith("native") for way in stack.ways) else "pytorch"
    inputs = stack.random_inputs(2, 20)
    assert torch.equal(stack.compute(*inputs), stack.compute(*inputs, backend=fastest))


@ways(reference=False, triton=False)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_equals_cpu(way: Way) -> None:
    if way.name not in ("pytorch", "steps-pytorch"):
        pytest.skip("for the CPU only")
    inputs = way.stack.random_inputs(3, 20)
    moved = [x.detach().cuda().requires_grad_() for x in inputs]
    readings = way.read(moved)
    expected = way.stack.compute(*inputs, backend="reference")
    assert_normwise_close(readings.cpu(), expected, 1e-12)
    cotangent = torch.randn_like(expected)
    wanted = gradients(expected, inputs, cotangent)
    for one, other in zip(gradients(readings, moved, cotangent.to(readings.device)), wanted, strict=True):
        assert_normwise_close(one, other, 1e-9)


def test_kernels_for_gpus_refuse_a_cpu() -> None:
    for name in ("superposition", "nondeterministic", "nondeterministic-window"):
        with pytest.raises(
            ValueError, match=rf"^{name.split('-')[0]}_stack: backend 'triton' needs .* a GPU, got cpu$"
        ):
            STACKS[name].compute(*STACKS[name].random_inputs(1, 2, 1), backend="triton")
