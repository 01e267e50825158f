"""The superposition stack against golden values, enumeration, a real stack, and its own reference."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import SuperpositionStackState, superposition_stack
from fairseq_stack.ops.superposition import native
from tests.helpers import (
    INSTRUCTION_SETS,
    assert_normwise_close,
    each_golden_file,
    threads,
    use_backend,
    use_instruction_set,
)

FAST = ["pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)]
PUSH, NOOP, POP = range(3)
Item = TypeVar("Item")

# Lengths around the places where segments, heights, and the vectors of a processor end; vectors shorter and longer.
SIZES = [(n, m) for n in (0, 1, 2, 3, 4, 5, 7, 63) for m in (1, 3, 70)]
SIZES += [(n, m) for n in (6, 15, 16, 17, 31, 33, 65) for m in (5, 33)]
# The compiled kernel follows push times, and in long sequences of short vectors components: one or several tiles of
# them, or so few that a column is cut into 16, 8 or 4 parts.
LONG_SIZES = [(127, 16), (128, 2), (129, 17), (256, 1), (258, 130)]
LONG_SIZES += [(257, 1), (258, 1), (300, 2), (301, 3), (290, 4), (385, 5), (300, 49), (259, 129)]


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, and all instruction sets of the compiled one."""
    return use_backend(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return use_backend(request.param, monkeypatch)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skips the test where the compiled backend cannot run."""
    use_instruction_set("baseline", monkeypatch)


def random_inputs(
    batch_size: int, length: int, size: int, *, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor]:
    actions = torch.randn(batch_size, length, 3, dtype=dtype).mul(2).softmax(2).requires_grad_()
    values = torch.randn(batch_size, length, size, dtype=dtype).requires_grad_()
    return actions, values


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((readings * cotangent).sum(), inputs, materialize_grads=True)


def step_through(inputs: Sequence[Tensor], state: SuperpositionStackState) -> Tensor:
    actions, values = inputs
    readings = []
    for t in range(values.size(1)):
        reading, state = state.step(actions[:, t], values[:, t])
        readings.append(reading)
    return torch.stack(readings, dim=1)


def initial_state(values: Tensor) -> SuperpositionStackState:
    return SuperpositionStackState.initial(
        batch_size=values.size(0), size=values.size(2), dtype=values.dtype, device=values.device
    )


def enumerated_readings(actions: Tensor, values: Tensor) -> Tensor:
    """Eq. 13 for one sequence: all sequences of actions, each with a Python list as its stack."""
    readings = torch.zeros_like(values)
    for t in range(1, values.size(0) + 1):
        for run in itertools.product((PUSH, NOOP, POP), repeat=t):
            stack: list[Tensor] = []
            for action, vector in zip(run, values, strict=False):
                apply(stack, action, vector)
            if stack:
                readings[t - 1] += actions[range(t), run].prod() * stack[-1]
    return readings


def enumerated_readings_item_by_item(actions: Tensor, values: Tensor) -> Tensor:
    """Eqs. 5-8 unrolled: v_s, pushed with a_s^push, counts as often as later actions leave it on top.

    What happened before s does not enter. It is the same as Eq. 13 where the weights of each step sum to 1.
    """
    readings = torch.zeros_like(values)
    for t in range(1, values.size(0) + 1):
        for s in range(1, t + 1):
            for run in itertools.product((PUSH, NOOP, POP), repeat=t - s):
                stack = [s]
                for later, action in enumerate(run, start=s + 1):
                    apply(stack, action, later)
                if stack == [s]:
                    weight = actions[s - 1, PUSH] * actions[range(s, t), run].prod()
                    readings[t - 1] += weight * values[s - 1]
    return readings


def apply(stack: list[Item], action: int, item: Item) -> None:
    if action == PUSH:
        stack.append(item)
    elif action == POP and stack:
        stack.pop()


@each_golden_file("superposition_*.npz")
def test_golden_values_and_gradients(path: Path, backend: str) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ("actions", "values")]
    readings = superposition_stack(*inputs, backend=backend)
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    for key, gradient in zip(
        ("actions", "values"), gradients(readings, inputs, torch.tensor(golden["cotangent"])), strict=True
    ):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@each_golden_file("superposition_*.npz")
def test_state_golden_values_and_gradients(path: Path) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ("actions", "values")]
    readings = step_through(inputs, initial_state(inputs[1]))
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    for key, gradient in zip(
        ("actions", "values"), gradients(readings, inputs, torch.tensor(golden["cotangent"])), strict=True
    ):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_probabilities_against_enumeration(length: int, backend: str) -> None:
    actions = torch.randn(length, 3, dtype=torch.float64).softmax(1)
    values = torch.randn(length, 2, dtype=torch.float64)
    readings = superposition_stack(actions[None], values[None], backend=backend)[0]
    assert_normwise_close(readings, enumerated_readings(actions, values), 1e-12)
    assert_normwise_close(readings, enumerated_readings_item_by_item(actions, values), 1e-12)


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_any_weights_against_enumeration(length: int, backend: str) -> None:
    actions, values = torch.randn(length, 3, dtype=torch.float64), torch.randn(length, 2, dtype=torch.float64)
    readings = superposition_stack(actions[None], values[None], backend=backend)[0]
    assert_normwise_close(readings, enumerated_readings_item_by_item(actions, values), 1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(runs=st.lists(st.lists(st.integers(0, 2), min_size=12, max_size=12), min_size=1, max_size=4))
def test_deterministic_actions_are_a_real_stack(backend: str, runs: list[list[int]]) -> None:
    actions = torch.nn.functional.one_hot(torch.tensor(runs), 3).float()
    values = torch.arange(1.0, actions.size(0) * 12 * 2 + 1).view(actions.size(0), 12, 2)
    readings = superposition_stack(actions, values, backend=backend)
    for run, vectors, rows in zip(runs, values, readings, strict=True):
        stack: list[Tensor] = []
        for action, vector, row in zip(run, vectors, rows, strict=True):
            apply(stack, action, vector)
            assert torch.equal(row, stack[-1] if stack else torch.zeros(2))


@pytest.mark.usefixtures("poisoned_memory")
@pytest.mark.parametrize(("length", "size"), SIZES)
@pytest.mark.parametrize("normalised", [True, False], ids=["probabilities", "any-weights"])
def test_fast_backends_equal_reference(length: int, size: int, normalised: bool, fast_backend: str) -> None:
    inputs = random_inputs(3, length, size)
    if not normalised:
        inputs = (torch.randn_like(inputs[0], requires_grad=True), inputs[1])
    cotangent = torch.randn(3, length, size, dtype=torch.float64)
    readings = superposition_stack(*inputs, backend=fast_backend)
    expected = superposition_stack(*inputs, backend="reference")
    assert readings.shape == (3, length, size)
    assert_normwise_close(readings, expected, 1e-12, "readings")
    if length:
        actual_gradients = gradients(readings, inputs, cotangent)
        for name, actual, wanted in zip(
            ("actions", "values"), actual_gradients, gradients(expected, inputs, cotangent), strict=True
        ):
            assert_normwise_close(actual, wanted, 1e-12, name)


@pytest.mark.usefixtures("poisoned_memory")
@pytest.mark.parametrize("name", INSTRUCTION_SETS)
@pytest.mark.parametrize(("length", "size"), LONG_SIZES)
def test_native_equals_pytorch_in_long_sequences(
    length: int, size: int, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_instruction_set(name, monkeypatch)
    inputs = random_inputs(2, length, size)
    cotangent = torch.randn_like(inputs[1])
    readings = superposition_stack(*inputs, backend="native")
    expected = superposition_stack(*inputs, backend="pytorch")
    assert_normwise_close(readings, expected, 1e-12, "readings")
    actual_gradients = gradients(readings, inputs, cotangent)
    for actual, wanted in zip(actual_gradients, gradients(expected, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-12)


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


@pytest.mark.parametrize(("length", "size"), [(1, 2), (5, 2), (5, 8)])
def test_gradcheck(length: int, size: int, backend: str) -> None:
    inputs = random_inputs(2, length, size)
    assert torch.autograd.gradcheck(lambda *x: superposition_stack(*x, backend=backend), inputs)


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


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_properties(backend: str, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 12))
    size = data.draw(st.integers(1, 14))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    actions = torch.randn(2, length, 3, generator=generator, dtype=torch.float64).mul(3).softmax(2)
    values = torch.rand(2, length, size, generator=generator, dtype=torch.float64)
    readings = superposition_stack(actions, values, backend=backend)

    def read(actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions, values, backend=backend)

    # A mean of the pushed vectors and zero vectors.
    assert (readings >= 0).all()
    assert (readings <= values.cummax(1).values + 1e-12).all()
    # Linear in the vectors.
    assert_normwise_close(read(actions, 3 * values - 1), 3 * readings + read(actions, -torch.ones_like(values)), 1e-12)
    # Causal: what follows does not matter.
    cut = data.draw(st.integers(0, length))
    assert_normwise_close(read(actions[:, :cut], values[:, :cut]), readings[:, :cut], 1e-12)
    # Sequences of a batch do not interact, nor do the components of the vectors.
    assert_normwise_close(read(actions[1:], values[1:]), readings[1:], 1e-12)
    assert_normwise_close(read(actions, values[:, :, :1]), readings[:, :, :1], 1e-12)
    # A no-op in every sequence repeats the reading.
    pause = torch.tensor([0.0, 1.0, 0.0], dtype=torch.float64).expand(2, 1, 3)
    longer = read(torch.cat([actions, pause], 1), torch.cat([values, torch.ones_like(values[:, :1])], 1))
    assert_normwise_close(longer[:, -1], readings[:, -1], 1e-12)


@pytest.mark.parametrize("weights", [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1e-38, 1, 1e-38)])
@pytest.mark.parametrize("scale", [0.0, 1e-40, 1e30])
def test_extreme_values_are_finite(weights: tuple[float, ...], scale: float, backend: str) -> None:
    actions = torch.tensor(weights, dtype=torch.float32).expand(2, 50, 3).clone().requires_grad_()
    values = torch.full((2, 50, 3), scale, requires_grad=True)
    readings = superposition_stack(actions, values, backend=backend)
    assert readings.isfinite().all()
    for gradient in gradients(readings, (actions, values), torch.ones_like(values)):
        assert gradient.isfinite().all()


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


@pytest.mark.parametrize("name", INSTRUCTION_SETS)
def test_later_values_do_not_reach_earlier_gradients(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of a cotangent with a vector that is pushed later is of no use, and may be infinite."""
    use_instruction_set(name, monkeypatch)
    actions, values = (x.detach() for x in random_inputs(2, 20, 3, dtype=torch.float32))
    values[:, 12:] = 1e38
    inputs = actions.requires_grad_(), values.requires_grad_()
    cotangent = torch.full_like(values, 100.0)
    cotangent[:, 12:] = 0
    wide = [x.detach().double().requires_grad_() for x in inputs]
    expected = gradients(superposition_stack(*wide, backend="reference"), wide, cotangent.double())
    actual = gradients(superposition_stack(*inputs, backend="native"), inputs, cotangent)
    for one, other in zip(actual, expected, strict=True):
        assert_normwise_close(one, other, 1e-5)


@pytest.mark.usefixtures("compiled")
def test_auto_is_the_compiled_backend_on_the_cpu() -> None:
    inputs = random_inputs(2, 20, 7)
    readings = superposition_stack(*inputs)
    assert torch.equal(readings, superposition_stack(*inputs, backend="native"))
    function = getattr(readings.grad_fn, "_forward_cls")  # noqa: B009  (an attribute that types do not have)
    assert function.__module__ == "fairseq_stack.ops.superposition.native"


@pytest.mark.usefixtures("compiled", "poisoned_memory")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("length", [0, 9])
def test_operators_are_what_pytorch_demands(length: int, dtype: torch.dtype) -> None:
    actions, values = random_inputs(2, length, 5, dtype=dtype)
    torch.library.opcheck(native._stack, (actions, values))
    torch.library.opcheck(native._stack_backward, (torch.randn_like(values), actions.detach(), values.detach()))


@pytest.mark.usefixtures("compiled")
def test_compiled_graph_without_breaks() -> None:
    def loss(actions: Tensor, values: Tensor) -> Tensor:
        return superposition_stack(actions, values).square().sum()

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


@pytest.mark.parametrize("length", [1, 2, 7, 20])
def test_steps_equal_the_whole_sequence(length: int) -> None:
    inputs = random_inputs(3, length, 4)
    cotangent = torch.randn_like(inputs[1])
    stepped = step_through(inputs, initial_state(inputs[1]))
    whole = superposition_stack(*inputs)
    assert_normwise_close(stepped, whole, 1e-12)
    for actual, wanted in zip(gradients(stepped, inputs, cotangent), gradients(whole, inputs, cotangent), strict=True):
        assert_normwise_close(actual, wanted, 1e-12)


def test_state_is_immutable() -> None:
    actions, values = (x.detach() for x in random_inputs(2, 6, 3))
    state = initial_state(values)
    for t in range(5):
        _, state = state.step(actions[:, t], values[:, t])
    before = state.elements.clone()
    first, after = state.step(actions[:, 5], values[:, 5])
    after.step(actions[:, 0], values[:, 0])
    state.reorder(torch.tensor([1, 1, 0]))
    second, _ = state.step(actions[:, 5], values[:, 5])
    assert torch.equal(first, second)
    assert torch.equal(state.elements, before)
    with pytest.raises(AttributeError):
        state.elements = before  # type: ignore[misc]


@pytest.mark.parametrize(
    "index", [[2, 0, 1], [1], [0, 0, 2, 2, 1], []], ids=["permute", "shrink", "repeat", "none-left"]
)
def test_state_reorder(index: list[int]) -> None:
    actions, values = (x.detach() for x in random_inputs(3, 8, 4))
    rows = torch.tensor(index, dtype=torch.long)
    state = initial_state(values)
    for t in range(4):
        _, state = state.step(actions[:, t], values[:, t])
    continued = step_through((actions[rows, 4:], values[rows, 4:]), state.reorder(rows))
    assert_normwise_close(continued, superposition_stack(actions[rows], values[rows])[:, 4:], 1e-12)


def test_state_reorder_before_the_first_step() -> None:
    state = SuperpositionStackState.initial(batch_size=1, size=4).reorder(torch.tensor([0, 0, 0]))
    reading, _ = state.step(torch.ones(3, 3), torch.ones(3, 4))
    assert reading.shape == (3, 4)


def test_state_follows_the_default_dtype_and_takes_half_precision() -> None:
    state = SuperpositionStackState.initial(batch_size=2, size=3)
    assert state.elements.dtype == torch.float32
    half = SuperpositionStackState.initial(batch_size=2, size=3, dtype=torch.float16)
    reading, half = half.step(torch.ones(2, 3).half(), torch.ones(2, 3).half())
    assert reading.dtype == torch.float16
    assert half.elements.dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    assert SuperpositionStackState.initial(batch_size=2, size=3).elements.dtype == torch.float64
