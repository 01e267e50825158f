"""The nondeterministic stack against golden values, the enumeration of all runs, and its own reference."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import nondeterministic_stack
from fairseq_stack.ops.nondeterministic import pytorch
from tests.helpers import INSTRUCTION_SETS, assert_normwise_close, each_golden_file, use_backend

ARGUMENTS = ("push", "replace", "pop", "values", "bottom")
# (n, Q, S, m)
SIZES = [(1, 1, 1, 1), (1, 2, 3, 2), (2, 3, 1, 2), (3, 1, 4, 1), (7, 2, 3, 5), (12, 3, 2, 3), (21, 1, 1, 2)]
IDS = ["n{}-q{}-s{}-m{}".format(*size) for size in SIZES]


FAST = ["pytorch", "pytorch-exponents", *(f"native-{name}" for name in INSTRUCTION_SETS)]


@pytest.fixture(params=["reference", *FAST])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All backends, both kinds of arithmetic of the one in PyTorch, and all instruction sets of the compiled one."""
    return choose(request.param, monkeypatch)


@pytest.fixture(params=FAST)
def fast_backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    return choose(request.param, monkeypatch)


def choose(name: str, monkeypatch: pytest.MonkeyPatch) -> str:
    if name == "pytorch-exponents":
        monkeypatch.setattr(pytorch, "PLAIN_RANGE", -1.0)
        return "pytorch"
    return use_backend(name, monkeypatch)


def random_inputs(
    batch_size: int,
    length: int,
    num_states: int,
    num_symbols: int,
    size: int,
    *,
    std: float = 1.0,
    masked: float = 0.0,
    batched_bottom: bool = False,
    dtype: torch.dtype = torch.float64,
) -> list[Tensor]:
    source = batch_size, length, num_states, num_symbols
    weights = [
        torch.randn(*source, *target, dtype=torch.float64).mul(std)
        for target in ((num_states, num_symbols), (num_states, num_symbols), (num_states,))
    ]
    if masked:
        weights = [x.masked_fill(torch.rand_like(x) < masked, -torch.inf) for x in weights]
    values = torch.randn(batch_size, length, size, dtype=torch.float64)
    bottom = torch.randn(*((batch_size, size) if batched_bottom else (size,)), dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (*weights, values, bottom)]


def vectors_of(inputs: Sequence[Tensor]) -> Tensor:
    """v_0..v_n, (B, n + 1, m)."""
    values, bottom = inputs[3:]
    return torch.cat([bottom.expand(values.shape[0], -1)[:, None], values], 1)


def gradients(readings: Tensor, inputs: Sequence[Tensor], cotangent: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((readings * cotangent).sum(), inputs, materialize_grads=True)


def assert_equal_results(
    inputs: Sequence[Tensor], backend: str, tolerance: float = 1e-9, rounding: float = 0.0
) -> None:
    """Readings and gradients equal the reference's; ``rounding`` is an absolute error allowed in gradients."""
    readings = nondeterministic_stack(*inputs, backend=backend)
    expected = nondeterministic_stack(*inputs, backend="reference")
    cotangent = torch.randn_like(readings)
    assert_normwise_close(readings, expected, tolerance, "readings")
    wanted = gradients(expected, inputs, cotangent)
    for name, actual, want in zip(ARGUMENTS, gradients(readings, inputs, cotangent), wanted, strict=True):
        assert actual.isfinite().all(), name
        scale = float(want.abs().max()) if want.numel() else 1.0
        assert_normwise_close(actual, want, max(tolerance, rounding / (scale or 1.0)), name)


def enumerated_weights(push: Tensor, replace: Tensor, pop: Tensor) -> Tensor:
    """W (n, n + 1, Q, S) of one sequence: all runs, each with a tuple of (symbol, vector's step) as its stack."""
    length, num_states, num_symbols = push.shape[:3]
    delta = [x.exp().tolist() for x in (push, replace, pop)]
    weights = np.zeros((length + 1, length + 1, num_states, num_symbols))

    def run(t: int, state: int, stack: tuple[tuple[int, int], ...], weight: float) -> None:
        symbol, vector = stack[-1]
        weights[t, vector, state, symbol] += weight
        if t == length:
            return
        pushes, replacements, pops = (x[t][state][symbol] for x in delta)
        for r in range(num_states):
            for y in range(num_symbols):
                run(t + 1, r, (*stack, (y, t + 1)), weight * pushes[r][y])
                run(t + 1, r, (*stack[:-1], (y, vector)), weight * replacements[r][y])
            if len(stack) > 1:
                run(t + 1, r, stack[:-1], weight * pops[r])

    run(0, 0, ((0, 0),), 1.0)
    return torch.tensor(weights[1:] / weights[1:].sum((1, 2, 3), keepdims=True))


@each_golden_file("nondeterministic_*.npz")
def test_golden_values_and_gradients(path: Path, backend: str) -> None:
    golden = np.load(path)
    inputs = [torch.tensor(golden[key]).requires_grad_() for key in ARGUMENTS]
    readings = nondeterministic_stack(*inputs, backend=backend)
    assert_normwise_close(readings, golden["readings"], 1e-9, "readings")
    for key, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.tensor(golden["cotangent"])), strict=True):
        assert_normwise_close(gradient, golden[f"grad_{key}"], 1e-9, key)


@pytest.mark.parametrize(
    ("length", "num_states", "num_symbols"),
    [(1, 3, 3), (2, 3, 2), (3, 2, 3), (5, 2, 2), (5, 1, 3), (6, 2, 1)],
)
def test_enumeration_of_all_runs(length: int, num_states: int, num_symbols: int, backend: str) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, 2, std=1.5, batched_bottom=True)
    expected = torch.stack([enumerated_weights(*x) for x in zip(*inputs[:3], strict=True)])
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert_normwise_close(weights, expected, 1e-12, "weights")
    expected_readings = torch.einsum("btirs,bim->btrsm", expected, vectors_of(inputs))
    assert_normwise_close(readings, expected_readings, 1e-12, "readings")


@pytest.mark.parametrize("std", [0.1, 1.0, 10.0, 30.0, 100.0])
@pytest.mark.parametrize(("length", "num_states", "num_symbols", "size"), SIZES, ids=IDS)
def test_equals_reference(
    length: int, num_states: int, num_symbols: int, size: int, std: float, fast_backend: str
) -> None:
    inputs = random_inputs(2, length, num_states, num_symbols, size, std=std)
    # The reference differentiates an average by subtraction, which leaves errors of about 1e-16.
    assert_equal_results(inputs, fast_backend, rounding=1e-14)


def test_equals_reference_on_a_long_sequence(fast_backend: str) -> None:
    assert_equal_results(random_inputs(1, 26, 2, 2, 3), fast_backend)


@pytest.mark.parametrize("masked", [0.0, 0.4])
@pytest.mark.parametrize("length", [5, 6, 7, 14, 15, 16, 17, 37, 38, 63])
def test_large_and_small_tiles_agree(length: int, masked: float, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = random_inputs(2, length, 2, 3, 2, std=3.0, masked=masked)
    cotangent = torch.randn(2, length, 2, 3, 2, dtype=torch.float64)
    results = []
    for name in ("pytorch", "pytorch-exponents"):
        readings = nondeterministic_stack(*inputs, backend=choose(name, monkeypatch))
        results.append((readings, *gradients(readings, inputs, cotangent)))
    for name, large, small in zip(("readings", *ARGUMENTS), *results, strict=True):
        assert_normwise_close(large, small, 1e-12, name)


@pytest.mark.parametrize("masked", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("std", [1.0, 30.0])
def test_forbidden_transitions(masked: float, std: float, fast_backend: str) -> None:
    assert_equal_results(random_inputs(6, 12, 2, 3, 3, std=std, masked=masked), fast_backend)


def test_forbidden_transitions_out_of_unreachable_states_may_grow(backend: str) -> None:
    """Weights that no run uses do not become too large for a number and spoil the others."""
    inputs = random_inputs(2, 16, 2, 2, 3)
    with torch.no_grad():
        for weights in inputs[:2]:
            weights[:, :, 1] += 200
            weights[:, :, 0, :, 1] = -torch.inf
        inputs[2][:, :, 0, :, 1] = -torch.inf
    one_state = [x.detach()[:, :, :1, :, :1].requires_grad_() for x in inputs[:3]] + inputs[3:]
    readings = nondeterministic_stack(*inputs, backend=backend)
    expected = nondeterministic_stack(*one_state, backend="reference")
    assert_normwise_close(readings[:, :, :1], expected, 1e-9)
    cotangent = torch.randn_like(expected)
    wanted = gradients(expected, one_state, cotangent)
    for i, gradient in enumerate(gradients(readings[:, :, :1], inputs, cotangent)):
        assert_normwise_close(gradient[:, :, :1, :, :1] if i < 3 else gradient, wanted[i], 1e-9, ARGUMENTS[i])


def test_reading_is_zero_where_no_run_is_left(backend: str) -> None:
    inputs = random_inputs(3, 8, 2, 2, 3)
    with torch.no_grad():
        for weights in inputs[:3]:
            weights[1, 4] = -torch.inf
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert (readings[1, 4:] == 0).all()
    assert (weights[1, 4:] == 0).all()
    expected = nondeterministic_stack(*[x[:, :4] for x in inputs[:4]] + inputs[4:], backend="reference")
    assert_normwise_close(readings[:, :4], expected, 1e-12)
    for name, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.ones_like(readings)), strict=True):
        assert gradient.isfinite().all(), name
        if name != "bottom":
            assert gradient[1, :4].any() or name == "pop"
            assert not gradient[1, 4:].any()


def hindsight(kind: str, cost: float) -> list[Tensor]:
    """Inputs in which the runs that win in the end are unlikely for a long time."""
    inputs = random_inputs(2, 15, 2, 3, 3)
    push, replace, pop = inputs[:3]
    with torch.no_grad():
        if kind == "deep-stacks-win":
            push[:, :7] -= cost
            pop[:, :7] -= cost
            push[:, 7:] -= cost
            pop[:, 7:] += 2 * cost
        elif kind == "only-pops-remain":
            push[:, :7] -= cost
            pop[:, :7] -= cost
            push[:, 7:] -= 3 * cost
            replace[:, 7:] -= 3 * cost
        elif kind == "only-low-stacks-remain":
            push[:, :5, ..., 2] -= 3 * cost
            replace[:, 5:10] -= cost
            push[:, 5:10, ..., :2] -= 3 * cost
            pop[:, 5:10] -= 3 * cost
            push[:, 10:] -= 3 * cost
            replace[:, 10:] -= 3 * cost
            pop[:, 10:, :, 2] -= 3 * cost
        elif kind == "always-push":
            push += cost
    return inputs


@pytest.mark.parametrize("cost", [10.0, 30.0, 100.0, 200.0])
@pytest.mark.parametrize("kind", ["deep-stacks-win", "only-pops-remain", "only-low-stacks-remain", "always-push"])
def test_unlikely_runs_that_win_in_the_end(kind: str, cost: float, fast_backend: str) -> None:
    assert_equal_results(hindsight(kind, cost), fast_backend)


def test_exponents_are_used_where_plain_numbers_are_not_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    original = pytorch.InnerWeights.__init__

    def spy(self: pytorch.InnerWeights, transitions: Tensor, num_states: int, plain: bool) -> None:
        tried.append(plain)
        original(self, transitions, num_states, plain)

    monkeypatch.setattr(pytorch.InnerWeights, "__init__", spy)
    for inputs, arithmetic in (
        (random_inputs(2, 60, 2, 3, 5), [True]),
        (random_inputs(2, 20, 2, 3, 5, masked=0.5), [True]),
        (hindsight("always-push", 200.0), [True, False]),
        (random_inputs(2, 9, 2, 3, 5, std=100.0), [False]),
    ):
        tried.clear()
        nondeterministic_stack(*inputs, backend="pytorch")
        assert tried == arithmetic


@pytest.mark.parametrize("weight", [5.0, 20.0, 60.0])
def test_gradient_where_one_run_dominates(weight: float, fast_backend: str) -> None:
    """The gradients are tiny, and have no error but one that is tiny beside them.

    With a loss on one reading, the same for all (r, y), adding a vector to all vectors changes no gradient of
    the log weights. The reference is exact if the vector of the dominant run is 0.
    """
    inputs = random_inputs(2, 9, 2, 3, 3)
    with torch.no_grad():
        for t, best in enumerate((0, 0, 0, 0, 2, 2, 2, 1, 1)):
            inputs[best][:, t, :, :, 0] += weight
    readings, weights = nondeterministic_stack(*inputs, backend=fast_backend, return_weights=True)
    top = weights[:, -1].sum((2, 3)).argmax(1)
    dominant = vectors_of(inputs).detach()[torch.arange(2), top]
    centred = [*inputs[:3], inputs[3] - dominant[:, None], inputs[4] - dominant]
    expected = nondeterministic_stack(*centred, backend="reference")
    cotangent = torch.zeros_like(readings)
    cotangent[:, -1] = torch.randn(2, 1, 1, 3, dtype=torch.float64)
    wanted = gradients(expected, inputs[:3], cotangent)
    assert max(float(x.abs().max()) for x in wanted) < 10 * math.exp(-weight / 2)
    for name, actual, want in zip(ARGUMENTS, gradients(readings, inputs[:3], cotangent), wanted, strict=False):
        assert_normwise_close(actual, want, 1e-9, name)


@pytest.mark.parametrize("argument", range(3), ids=ARGUMENTS[:3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_is_not_a_number_stays_visible(argument: int, dtype: torch.dtype, backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(2, 12, 2, 3, 3, dtype=dtype)]
    expected = nondeterministic_stack(*inputs, backend=backend)
    inputs[argument][0, 5, 1, 2, 0] = torch.nan
    readings = nondeterministic_stack(*inputs, backend=backend)
    assert readings[0, 5].isnan().any()
    assert readings[0, 6:].isnan().all()
    assert_normwise_close(readings[1], expected[1], 1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_warning_where_results_can_be_inexact(dtype: torch.dtype, fast_backend: str) -> None:
    inputs = [x.detach() for x in random_inputs(3, 6, 2, 3, 3, dtype=dtype, masked=0.2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nondeterministic_stack(*inputs, backend=fast_backend)
        inputs[1][1, 2] -= 200
        nondeterministic_stack(*inputs, backend=fast_backend)
    inputs[1][1, 2] -= 40
    with pytest.warns(UserWarning, match="log weights of one step are more than 230 apart"):
        nondeterministic_stack(*inputs, backend=fast_backend)


@pytest.mark.parametrize("magnitude", [100.0, 500.0, 1e4])
@pytest.mark.parametrize("kind", ["gaussian", "signs", "pops-before-all", "pushes-before-all"])
@pytest.mark.parametrize(("num_states", "num_symbols"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_large_log_weights_give_finite_results(
    num_states: int, num_symbols: int, kind: str, magnitude: float, dtype: torch.dtype, backend: str
) -> None:
    inputs = [x.detach() for x in random_inputs(2, 12, num_states, num_symbols, 3, dtype=dtype)]
    for i in range(3):
        if kind == "gaussian":
            inputs[i] *= magnitude
        elif kind == "signs":
            inputs[i] = inputs[i].sign() * magnitude
        else:
            best = 2 if kind == "pops-before-all" else 0
            inputs[i] += magnitude if i == best else -magnitude
    inputs = [x.requires_grad_() for x in inputs]
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert readings.isfinite().all()
    assert_normwise_close(weights.sum((2, 3, 4)), torch.ones(2, 12), 1e-6)
    for name, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.randn_like(readings)), strict=True):
        assert gradient.isfinite().all(), name


@pytest.mark.parametrize("batched", [False, True], ids=["bottom-m", "bottom-B-m"])
@pytest.mark.parametrize("length", [1, 2, 4])
def test_gradcheck(length: int, batched: bool, backend: str) -> None:
    inputs = random_inputs(2, length, 2, 1, 2, batched_bottom=batched)
    assert torch.autograd.gradcheck(lambda *x: nondeterministic_stack(*x, backend=backend), inputs)


@pytest.mark.parametrize("masked", [0.0, 0.3])
@pytest.mark.parametrize("std", [500.0, 2000.0])
def test_log_weights_far_apart_give_bounded_gradients(std: float, masked: float) -> None:
    inputs = random_inputs(64, 14, 3, 2, 3, std=std, masked=masked)
    readings = nondeterministic_stack(*inputs, backend="pytorch")
    for name, gradient in zip(ARGUMENTS, gradients(readings, inputs, torch.randn_like(readings)), strict=True):
        assert gradient.abs().max() < 100, name


def test_gradcheck_of_weights(backend: str) -> None:
    inputs = random_inputs(1, 4, 1, 2, 1)

    def both(*x: Tensor) -> tuple[Tensor, Tensor]:
        return nondeterministic_stack(*x, backend=backend, return_weights=True)

    assert torch.autograd.gradcheck(both, inputs)


def test_weights_give_the_readings(backend: str) -> None:
    inputs = random_inputs(3, 9, 2, 3, 4)
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert weights.shape == (3, 9, 10, 2, 3)
    assert (weights >= 0).all()
    assert_normwise_close(weights.sum((2, 3, 4)), torch.ones(3, 9), 1e-12)
    assert_normwise_close(torch.einsum("btirs,bim->btrsm", weights, vectors_of(inputs)), readings, 1e-12)
    assert_normwise_close(nondeterministic_stack(*inputs, backend=backend), readings, 1e-12)
    for t in range(1, 10):
        assert (weights[:, t - 1, t + 1 :] == 0).all(), "a vector is read before it is pushed"


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("length", [0, 3])
def test_empty_axes(length: int, batch_size: int, backend: str) -> None:
    inputs = random_inputs(batch_size, length, 2, 3, 4)
    readings, weights = nondeterministic_stack(*inputs, backend=backend, return_weights=True)
    assert readings.shape == (batch_size, length, 2, 3, 4)
    assert weights.shape == (batch_size, length, length + 1, 2, 3)
    for x, gradient in zip(inputs, gradients(readings, inputs, torch.ones_like(readings)), strict=True):
        assert gradient.shape == x.shape


def test_nothing_can_be_popped_at_the_first_step(backend: str) -> None:
    inputs = random_inputs(2, 1, 2, 2, 3)
    readings = nondeterministic_stack(*inputs, backend=backend)
    assert not gradients(readings, inputs, torch.randn_like(readings))[2].any()


def test_what_cannot_be_taken_at_the_first_step_does_not_matter(backend: str) -> None:
    inputs = random_inputs(2, 4, 2, 2, 3)
    expected = nondeterministic_stack(*inputs, backend=backend)
    with torch.no_grad():
        inputs[2][:, 0] += 2000
        for weights in inputs[:3]:
            weights[:, 0, 1] += 2000
            weights[:, 0, :, 1] += 2000
    assert_normwise_close(nondeterministic_stack(*inputs, backend=backend), expected, 1e-12)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(data=st.data())
def test_properties(backend: str, data: st.DataObject) -> None:
    length, num_states, num_symbols = (data.draw(st.integers(1, most)) for most in (6, 3, 3))
    torch.manual_seed(data.draw(st.integers(0, 2**31)))
    std = data.draw(st.sampled_from([0.0, 1.0, 20.0]))
    inputs = [x.detach() for x in random_inputs(2, length, num_states, num_symbols, 3, std=std)]
    push, replace, pop, values, bottom = inputs

    def read(*inputs: Tensor) -> Tensor:
        return nondeterministic_stack(*inputs, backend=backend)

    readings = read(*inputs)
    # A factor for all weights of a step does not matter.
    factor = torch.randn(2, length, dtype=torch.float64).mul(data.draw(st.sampled_from([1.0, 300.0])))
    scaled = [x + factor.reshape(2, length, *(1,) * (x.dim() - 2)) for x in (push, replace, pop)]
    assert_normwise_close(read(*scaled, values, bottom), readings, 1e-9)
    # Linear in the vectors.
    ones = read(push, replace, pop, torch.ones_like(values), torch.ones_like(bottom))
    assert_normwise_close(read(push, replace, pop, 3 * values - 1, 3 * bottom - 1), 3 * readings - ones, 1e-9)
    # All vectors equal: their mean.
    assert_normwise_close(ones.sum((2, 3)), torch.ones_like(values), 1e-9)
    # Causal: what follows does not matter.
    cut = data.draw(st.integers(0, length))
    assert_normwise_close(read(*(x[:, :cut] for x in inputs[:4]), bottom), readings[:, :cut], 1e-9)
    # Sequences of a batch do not interact.
    assert_normwise_close(read(*(x[1:] for x in inputs[:4]), bottom), readings[1:], 1e-9)
    # States other than the start state, and symbols other than the bottom symbol, have no order.
    states = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(num_states - 1) + 1])
    symbols = torch.cat([torch.zeros(1, dtype=torch.long), torch.randperm(num_symbols - 1) + 1])
    renamed = [x[:, :, states][:, :, :, symbols][:, :, :, :, states] for x in (push, replace, pop)]
    renamed[:2] = [x[..., symbols] for x in renamed[:2]]
    assert_normwise_close(read(*renamed, values, bottom), readings[:, :, states][:, :, :, symbols], 1e-9)


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
