"""All backends of all stacks return the numbers that are nearest to the true ones, which are known in integers.

With log weights of 0, log 2 and -inf, weights of sets of runs are integers, up to powers of two. As long as these have
no more binary digits than a mantissa, a backend that works with real numbers makes no error before the quotient W: the
exponential of log 2 is exactly 2 if log 2 has the precision in which it is taken. Actions and strengths that are binary
fractions make everything exact.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fairseq_stack.ops import (
    NondeterministicStackState,
    StratificationStackState,
    SuperpositionStackState,
    nondeterministic_stack,
    stratification_stack,
    superposition_stack,
)
from fairseq_stack.ops.nondeterministic import native
from tests.helpers import INSTRUCTION_SETS, use_backend, use_instruction_set
from tests.ops import exact
from tests.ops.test_nondeterministic import FAST, choose

MANTISSA = {torch.float32: 24, torch.float64: 53}
FEW = settings(max_examples=15)
NATIVE = [f"native-{name}" for name in INSTRUCTION_SETS]


def as_integers(x: Tensor) -> exact.Integers:
    return x.numpy().astype(object)


def quotients(numerators: exact.Integers, denominators: exact.Integers | int) -> Tensor:
    """The nearest doubles to the quotients, and 0 for 0 / 0."""
    divide = np.frompyfunc(lambda a, b: a / b if b else 0.0, 2, 1)
    return torch.tensor(np.asarray(divide(numerators, denominators), dtype=np.float64))


def digits(x: exact.Integers) -> int:
    """How many binary digits the largest of these integers has."""
    return max((abs(int(number)).bit_length() for number in x.flat), default=0)


# ---------------------------------------------------------------- nondeterministic stack


class Runs(NamedTuple):
    """Transition weights with a first axis of size 1, and what follows from them in integers."""

    push: Tensor
    replace: Tensor
    pop: Tensor
    tops: exact.Integers
    totals: exact.Integers
    weights: Tensor  # W, (1, n, n + 1, Q, S)

    def inputs(self, dtype: torch.dtype) -> list[Tensor]:
        """The arguments of the stack: unit vectors are pushed, so that readings are W."""
        vectors = torch.eye(len(self.totals) + 1, dtype=dtype)
        log_weights = [x.double().log().to(dtype) for x in self[:3]]
        return [*log_weights, vectors[None, 1:], vectors[0]]


@functools.cache
def runs(
    length: int, num_states: int, num_symbols: int, forbidden: float, quiet: int = 0, twos: float = 0.5, seed: int = 0
) -> Runs:
    """Random transitions with weights of 0, 1 and 2.

    Args:
        forbidden: the share of weights that are 0.
        quiet: how many steps follow on each such step in which one transition out of each configuration has the weight
            1, and no other is possible.
        twos: the share of the weights in the other steps, but for those that are 0, that are 2.
        seed: of the random numbers.
    """
    generator = torch.Generator().manual_seed(seed)
    size = num_states * num_symbols
    shape = length, size, 2 * size + num_states
    weights = 1 + (torch.rand(shape, generator=generator) < twos).long()
    weights.masked_fill_(torch.rand(shape, generator=generator) < forbidden, 0)
    only = torch.nn.functional.one_hot(torch.randint(shape[2], shape[:2], generator=generator), shape[2])
    is_quiet = torch.arange(length) % (quiet + 1) != 0
    weights = torch.where(is_quiet[:, None, None], only, weights).unflatten(1, (num_states, num_symbols))
    push, replace, pop = weights.split([size, size, num_states], -1)
    push, replace = (x.unflatten(-1, (num_states, num_symbols)) for x in (push, replace))
    tops, totals = exact.run_weights(*(as_integers(x) for x in (push, replace, pop)))
    nearest = quotients(tops, totals.reshape(-1, 1, 1, 1))
    return Runs(push[None], replace[None], pop[None], tops, totals, nearest[None])


CASES = {
    "n0": (0, 2, 2, 0.0),
    "n1": (1, 2, 3, 0.3),
    "n2": (2, 3, 2, 0.3),
    "n16": (16, 2, 2, 0.4),
    "n17": (17, 1, 2, 0.3),
    "n63": (63, 1, 2, 0.3, 2),
}


@pytest.fixture(params=CASES)
def found(request: pytest.FixtureRequest) -> Runs:
    return runs(*CASES[request.param])


@pytest.fixture(params=CASES)
def found_without_twos(request: pytest.FixtureRequest) -> Runs:
    """Log weights of 0 and -inf have the same value in any precision."""
    length, num_states, num_symbols, forbidden, *quiet = CASES[request.param]
    return runs(length, num_states, num_symbols, forbidden, *quiet, twos=0.0)


def test_integers_of_the_tests_are_those_of_all_runs() -> None:
    for seed in range(8):
        few = runs(5, 1 + seed % 2, 2, 0.25, quiet=seed // 4, seed=seed)
        expected = exact.enumerated_run_weights(*(as_integers(x[0]) for x in few[:3]))
        assert (few.tops == expected).all()
    motzkin_prefixes = [2, 5, 13, 35, 96, 267, 750]
    assert runs(7, 1, 1, 0.0, twos=0.0).totals.tolist() == motzkin_prefixes


def test_integers_are_large_and_fit(found: Runs) -> None:
    assert (40 if len(found.totals) > 2 else 0) <= digits(found.totals) <= MANTISSA[torch.float64]


@pytest.mark.parametrize("backend", FAST)
def test_nondeterministic_weights_are_the_nearest_doubles(
    backend: str, found: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = choose(backend, monkeypatch)
    readings, weights = nondeterministic_stack(*found.inputs(torch.float64), backend=backend, return_weights=True)
    assert torch.equal(weights, found.weights)
    assert torch.equal(readings, found.weights.permute(0, 1, 3, 4, 2))


@pytest.mark.parametrize("backend", FAST)
def test_nondeterministic_weights_are_the_nearest_doubles_before_padding(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What else is in the batch, and what comes later, changes no bit."""
    found, shorter = runs(*CASES["n16"]), 11
    *steps, bottom = found.inputs(torch.float64)
    steps = [x.repeat(2, *(1,) * (x.dim() - 1)) for x in steps]
    for x in steps:
        x[1, shorter:] = torch.randn_like(x[1, shorter:])
    inputs = [*steps, bottom]
    _, weights = nondeterministic_stack(*inputs, backend=choose(backend, monkeypatch), return_weights=True)
    assert torch.equal(weights[:1], found.weights)
    assert torch.equal(weights[1:, :shorter], found.weights[:, :shorter])


@pytest.mark.parametrize("backend", FAST)
def test_nondeterministic_weights_are_the_nearest_numbers_in_float32(
    backend: str, found_without_twos: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = found_without_twos.inputs(torch.float32)
    _, weights = nondeterministic_stack(*inputs, backend=choose(backend, monkeypatch), return_weights=True)
    assert torch.equal(weights, found_without_twos.weights.float())


@pytest.mark.parametrize("size", [(10, 1, 1), (5, 1, 3), (5, 2, 2)])
@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_nondeterministic_weights_of_kernels_in_float32(
    instruction_set: str, size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is forbidden, the kernels compute in float32: with 1, 2 and the numbers of float32."""
    use_instruction_set(instruction_set, monkeypatch)
    found = runs(*size, 0.0, twos=0.4)
    assert 16 <= digits(found.totals) <= MANTISSA[torch.float32]
    push, replace, pop, values, bottom = found.inputs(torch.float32)
    *_, wide = native._stack(push, replace, pop, torch.cat([bottom[None, None], values], 1))
    assert not wide.any()
    weights = nondeterministic_stack(push, replace, pop, values, bottom, backend="native", return_weights=True)[1]
    assert torch.equal(weights, found.weights.float())


def test_log_2_is_exact_in_the_precision_it_is_given_in() -> None:
    """Its exponential is exactly 2; in more digits, that of the nearest float32 is not."""
    for dtype in (torch.float32, torch.float64):
        log_2 = torch.full((33,), math.log(2), dtype=dtype)
        assert (log_2.exp() == 2).all()
        assert ((-log_2).exp() == 0.5).all()
    assert torch.tensor(math.log(2)).float().double().exp() != 2


@pytest.mark.parametrize("case", ["n0", "n1", "n2", "n16", "n17"])
def test_nondeterministic_reference_in_log_space(case: str) -> None:
    """Logarithms of integers are rounded: W times the total is an integer up to a relative error of 2^-40."""
    found = runs(*CASES[case])
    _, weights = nondeterministic_stack(*found.inputs(torch.float64), backend="reference", return_weights=True)
    for (t, *rest), weight in np.ndenumerate(weights[0].numpy()):
        assert abs(weight * found.totals[t] - found.tops[t, *rest]) <= 2**-40 * found.totals[t]


def assert_steps_return_the_nearest_numbers(found: Runs, dtype: torch.dtype, *, tracked: bool) -> None:
    *steps, bottom = (x.requires_grad_(tracked) for x in found.inputs(dtype))
    _, _, num_states, num_symbols = found.push.shape[:4]
    state = NondeterministicStackState.initial(bottom, batch_size=1, num_states=num_states, num_symbols=num_symbols)
    for t in range(len(found.totals)):
        reading, state = state.step(*(x[:, t] for x in steps))
        assert torch.equal(reading.detach(), found.weights[:, t].permute(0, 2, 3, 1).to(dtype))
        assert state.columns.requires_grad == tracked


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_nondeterministic_steps_of_kernels_return_the_nearest_doubles(
    instruction_set: str, found: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_instruction_set(instruction_set, monkeypatch)
    assert_steps_return_the_nearest_numbers(found, torch.float64, tracked=False)


def test_nondeterministic_steps_for_autograd_return_the_nearest_doubles(found: Runs) -> None:
    assert_steps_return_the_nearest_numbers(found, torch.float64, tracked=True)


@pytest.mark.parametrize("tracked", [False, True])
def test_nondeterministic_steps_return_the_nearest_numbers_in_float32(found_without_twos: Runs, tracked: bool) -> None:
    assert_steps_return_the_nearest_numbers(found_without_twos, torch.float32, tracked=tracked)


@pytest.mark.parametrize("backend", FAST)
def test_nondeterministic_weights_are_the_nearest_doubles_for_any_transitions(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = choose(backend, monkeypatch)

    @FEW
    @given(
        length=st.integers(1, 6),
        num_states=st.integers(1, 3),
        num_symbols=st.integers(1, 3),
        forbidden=st.sampled_from([0.0, 0.3, 0.7, 0.9]),
        quiet=st.integers(0, 2),
        seed=st.integers(0, 2**31),
    )
    def test(length: int, num_states: int, num_symbols: int, forbidden: float, quiet: int, seed: int) -> None:
        found = runs(length, num_states, num_symbols, forbidden, quiet, seed=seed)
        weights = nondeterministic_stack(*found.inputs(torch.float64), backend=backend, return_weights=True)[1]
        assert torch.equal(weights, found.weights)

    test()


# ---------------------------------------------------------------- superposition stack


class Walk(NamedTuple):
    """Actions of 0, 1/4, 1/2 and 1, integers for values and cotangents, and what follows from them, as doubles."""

    actions: Tensor  # (1, n, 3)
    values: Tensor  # (1, n, m)
    cotangents: Tensor
    readings: Tensor
    action_gradients: Tensor
    value_gradients: Tensor


@functools.cache
def walk(length: int, size: int, fractional: int, seed: int = 0) -> Walk:
    """At most ``fractional`` steps mix actions: with weights whose sum is at most 1."""
    generator = torch.Generator().manual_seed(seed)
    mixtures = torch.tensor([[4, 0, 0], [0, 4, 0], [0, 0, 4], [2, 1, 1], [1, 2, 1], [1, 1, 2], [2, 0, 2], [2, 1, 0]])
    choices = torch.randint(3, (length,), generator=generator)
    mixed = torch.randperm(length, generator=generator)[:fractional]
    choices[mixed] = torch.randint(3, len(mixtures), (len(mixed),), generator=generator)
    quarters = as_integers(mixtures[choices])
    values, cotangents = (as_integers(torch.randint(-3, 4, (length, size), generator=generator)) for _ in range(2))
    # Readings are linear in each weight: its gradient is the difference that 4 quarters more of it make.
    more = quarters + 4 * np.eye(3 * length, dtype=object).reshape(3 * length, length, 3)
    scales = np.array([4 ** (t + 1) for t in range(length)], dtype=object).reshape(length, 1)
    readings = exact.superposition(quarters, values, 4)
    differences = exact.superposition(more, values, 4) - readings
    whole = 4**length
    gradients = (differences * cotangents * (whole // scales)).sum((1, 2))
    weights = exact.superposition(quarters, np.eye(length, dtype=object), 4) * (whole // scales)
    of_values = weights.T @ cotangents
    return Walk(
        torch.tensor((quarters / 4).astype(np.float64))[None],
        torch.tensor(values.astype(np.float64))[None],
        torch.tensor(cotangents.astype(np.float64))[None],
        quotients(readings, scales)[None],
        quotients(gradients, whole).view(1, length, 3),
        quotients(of_values, whole)[None],
    )


# n, m, and how many steps may mix actions, so that everything has at most 24, or 53, binary digits
WALKS = {
    torch.float32: [(0, 3, 0), (1, 1, 1), (2, 5, 2), (7, 3, 6), (16, 33, 5), (17, 2, 5), (63, 5, 4)],
    torch.float64: [(0, 3, 0), (1, 1, 1), (2, 5, 2), (16, 33, 16), (17, 2, 17), (63, 5, 18)],
}
ALL_WALKS = [(dtype, *size) for dtype, sizes in WALKS.items() for size in sizes]


@pytest.mark.parametrize("backend", ["reference", "pytorch", *NATIVE])
@pytest.mark.parametrize(("dtype", "length", "size", "fractional"), ALL_WALKS)
def test_superposition_readings_and_gradients_are_exact(
    dtype: torch.dtype, length: int, size: int, fractional: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = walk(length, size, fractional)
    for x in found[3:]:
        assert torch.equal(x, x.to(dtype).double())
    actions, values = (x.to(dtype).requires_grad_() for x in found[:2])
    readings = superposition_stack(actions, values, backend=use_backend(backend, monkeypatch))
    assert torch.equal(readings, found.readings.to(dtype))
    gradients = torch.autograd.grad((readings * found.cotangents.to(dtype)).sum(), (actions, values))
    for gradient, expected in zip(gradients, found[4:], strict=True):
        assert torch.equal(gradient, expected.to(dtype))


@pytest.mark.parametrize(("dtype", "length", "size", "fractional"), ALL_WALKS)
def test_superposition_steps_are_exact(dtype: torch.dtype, length: int, size: int, fractional: int) -> None:
    found = walk(length, size, fractional)
    state = SuperpositionStackState.initial(batch_size=1, size=size, dtype=dtype)
    for t in range(length):
        reading, state = state.step(found.actions[:, t].to(dtype), found.values[:, t].to(dtype))
        assert torch.equal(reading, found.readings[:, t].to(dtype))


@pytest.mark.parametrize("backend", ["reference", "pytorch", *NATIVE])
def test_superposition_is_exact_for_any_actions(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = use_backend(backend, monkeypatch)

    @FEW
    @given(length=st.integers(1, 15), size=st.integers(1, 20), seed=st.integers(0, 2**31))
    def test(length: int, size: int, seed: int) -> None:
        found = walk(length, size, 15, seed)
        assert torch.equal(superposition_stack(found.actions, found.values, backend=backend), found.readings)

    test()


# ---------------------------------------------------------------- stratification stack


def strengths(length: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pops and pushes (1, n) that are multiples of 1/8, many of which use another up; values; and the readings."""
    generator = torch.Generator().manual_seed(seed)
    pop, push = torch.randint(13, (2, length), generator=generator)
    values = torch.randint(-50, 51, (length, 3), generator=generator)
    readings = exact.stratification(as_integers(pop), as_integers(push), as_integers(values), whole=8)
    return pop[None] / 8.0, push[None] / 8.0, values[None].float(), quotients(readings, 8)[None]


@pytest.mark.parametrize("dtype", MANTISSA)
@pytest.mark.parametrize("backend", ["reference", "pytorch"])
@pytest.mark.parametrize("length", [0, 1, 2, 16, 17, 63])
def test_stratification_is_exact(length: int, backend: str, dtype: torch.dtype) -> None:
    for seed in range(5):
        *inputs, readings = (x.to(dtype) for x in strengths(length, seed))
        assert torch.equal(stratification_stack(*inputs, backend=backend), readings)


@pytest.mark.parametrize("dtype", MANTISSA)
@pytest.mark.parametrize("length", [1, 2, 16, 17, 63])
def test_stratification_steps_are_exact(length: int, dtype: torch.dtype) -> None:
    *inputs, readings = (x.to(dtype) for x in strengths(length, seed=0))
    state = StratificationStackState.initial(batch_size=1, size=3, dtype=dtype)
    for t in range(length):
        reading, state = state.step(*(x[:, t] for x in inputs))
        assert torch.equal(reading, readings[:, t])
