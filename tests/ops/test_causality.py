"""What is not finite reaches no reading of an earlier step, no gradient through one, and no other row of the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import (
    NondeterministicStackState,
    QueueState,
    StratificationStackState,
    SuperpositionStackState,
    nondeterministic_stack,
    queue,
    stratification_stack,
    superposition_stack,
)
from fairseq_stack.ops.nondeterministic import pytorch
from tests.helpers import INSTRUCTION_SETS, use_backend

BATCH_SIZE, SIZE = 2, 5
LENGTH, SHORT_LENGTH, LONG_LENGTH = 21, 6, 300  # the kernel follows components of vectors this short in long sequences
NATIVE = [f"native-{name}" for name in INSTRUCTION_SETS]
NOT_FINITE = [torch.nan, torch.inf, -torch.inf]
Outputs = tuple[Tensor, ...]


def superposition_inputs(length: int, dtype: torch.dtype) -> dict[str, Tensor]:
    return {
        "actions": torch.randn(BATCH_SIZE, length, 3, dtype=dtype).softmax(2),
        "values": torch.randn(BATCH_SIZE, length, SIZE, dtype=dtype),
    }


def stratification_inputs(length: int, dtype: torch.dtype) -> dict[str, Tensor]:
    return {
        "pop": torch.rand(BATCH_SIZE, length, dtype=dtype),
        "push": torch.rand(BATCH_SIZE, length, dtype=dtype),
        "values": torch.randn(BATCH_SIZE, length, SIZE, dtype=dtype),
    }


def nondeterministic_inputs(length: int, dtype: torch.dtype, *, masked: bool = False) -> dict[str, Tensor]:
    source = BATCH_SIZE, length, 2, 3
    weights = {
        name: torch.randn(*source, *target, dtype=dtype)
        for name, target in {"push": (2, 3), "replace": (2, 3), "pop": (2,)}.items()
    }
    if masked:
        weights = {name: x.masked_fill(torch.rand_like(x) < 0.2, -torch.inf) for name, x in weights.items()}
    vectors = {
        "values": torch.randn(BATCH_SIZE, length, SIZE, dtype=dtype),
        "bottom": torch.randn(BATCH_SIZE, SIZE, dtype=dtype),
    }
    return weights | vectors


def step_superposition(actions: Tensor, values: Tensor) -> Outputs:
    state = SuperpositionStackState.initial(batch_size=BATCH_SIZE, size=SIZE, dtype=values.dtype)
    return _step(state, actions, values)


def step_stratification(pop: Tensor, push: Tensor, values: Tensor) -> Outputs:
    state = StratificationStackState.initial(batch_size=BATCH_SIZE, size=SIZE, dtype=values.dtype)
    return _step(state, pop, push, values)


def step_queue(pop: Tensor, push: Tensor, values: Tensor) -> Outputs:
    return _step(QueueState.initial(batch_size=BATCH_SIZE, size=SIZE, dtype=values.dtype), pop, push, values)


def step_nondeterministic(push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor) -> Outputs:
    state = NondeterministicStackState.initial(bottom, batch_size=BATCH_SIZE, num_states=2, num_symbols=3)
    return _step(state, push, replace, pop, values)


def _step(state: Any, *inputs: Tensor) -> Outputs:
    readings = []
    for t in range(inputs[0].shape[1]):
        reading, state = state.step(*(x[:, t] for x in inputs))
        readings.append(reading)
    return (torch.stack(readings, 1),)


@dataclass(frozen=True)
class Case:
    """A stack by a backend: what it computes, the readings first, and its inputs."""

    compute: Callable[..., Outputs]
    inputs: dict[str, Tensor]

    @property
    def length(self) -> int:
        return self.inputs["values"].shape[1]


def case(stack: str, backend: str, monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype = torch.float32) -> Case:
    length = LENGTH if backend == "pytorch" or backend in NATIVE else SHORT_LENGTH
    if stack == "long-sup":
        length = LONG_LENGTH
    if backend == "pytorch-exponents":
        monkeypatch.setattr(pytorch, "PLAIN_RANGE", -1.0)
        backend = "pytorch"
    backend = use_backend(backend, monkeypatch)
    if stack in ("sup", "long-sup"):
        compute = step_superposition if backend == "step" else _op(superposition_stack, backend)
        return Case(compute, superposition_inputs(length, dtype))
    if stack == "strat":
        compute = step_stratification if backend == "step" else _op(stratification_stack, backend)
        return Case(compute, stratification_inputs(length, dtype))
    if stack == "queue":
        compute = step_queue if backend == "step" else _op(queue, backend)
        return Case(compute, stratification_inputs(length, dtype))
    if backend == "step":
        return Case(step_nondeterministic, nondeterministic_inputs(length, dtype, masked=stack == "nd-masked"))
    inputs = nondeterministic_inputs(length, dtype, masked=stack == "nd-masked")
    return Case(lambda **inputs: nondeterministic_stack(**inputs, backend=backend, return_weights=True), inputs)


def _op(op: Callable[..., Tensor], backend: str) -> Callable[..., Outputs]:
    return lambda **inputs: (op(**inputs, backend=backend),)


def spoil(inputs: dict[str, Tensor], name: str, garbage: float, first: int) -> tuple[dict[str, Tensor], Tensor]:
    """The inputs with garbage in row 0 of one of them from step ``first`` on; and where, a mask for that one."""
    where = torch.zeros_like(inputs[name], dtype=torch.bool)
    if name == "values":
        where[0, first:, 1] = True
    elif name in ("pop", "push") and where.dim() == 2:
        where[0, first:] = True
    elif name == "actions":
        where[0, first:, 2] = True
    else:
        where[0, first:, 1, 2, 0] = True
    return inputs | {name: inputs[name].masked_fill(where, garbage)}, where


def results_until(case: Case, inputs: dict[str, Tensor], stop: int) -> tuple[Outputs, dict[str, Tensor]]:
    """What is computed, and the gradients of a loss that depends on it until step ``stop`` only."""
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    outputs = case.compute(**leaves)
    generator = torch.Generator().manual_seed(0)
    loss = torch.zeros(())
    for x in outputs:
        loss = loss + (x[:, :stop] * torch.randn(x[:, :stop].shape, generator=generator).to(x.dtype)).sum()
    gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
    return tuple(x.detach() for x in outputs), dict(zip(leaves, gradients, strict=True))


def check_causality(case: Case, name: str, garbage: float, first: int | None = None) -> None:
    first = case.length * 2 // 3 if first is None else first
    spoilt, where = spoil(case.inputs, name, garbage, first)
    wanted, wanted_gradients = results_until(case, case.inputs, first)
    found, gradients = results_until(case, spoilt, first)
    for actual, expected in zip(found, wanted, strict=True):
        assert torch.equal(actual[:, :first], expected[:, :first])
        assert torch.equal(actual[1:], expected[1:])
    for argument, gradient in gradients.items():
        assert torch.equal(gradient, wanted_gradients[argument]), argument
    assert (gradients[name][where] == 0).all()
    after = found[0][0, first:].flatten(1, -2) if found[0].dim() == 5 else found[0][0, first:, None]
    if name == "values":
        assert after[..., 1].isnan().all()
        assert not after[..., 0].isnan().any()
    else:
        assert after.isnan().all()
        assert all(x[0, first:].isnan().any() for x in found)


SUPERPOSITION = [("sup", backend) for backend in ("reference", "pytorch", "step", *NATIVE)]
SUPERPOSITION += [("long-sup", backend) for backend in NATIVE]
STRATIFICATION = [(stack, backend) for stack in ("strat", "queue") for backend in ("reference", "pytorch", "step")]
NONDETERMINISTIC = [
    (stack, backend)
    for stack in ("nd", "nd-masked")
    for backend in ("reference", "pytorch", "pytorch-exponents", "step", *NATIVE)
]


@pytest.mark.parametrize("garbage", NOT_FINITE)
@pytest.mark.parametrize("name", ["actions", "values"])
@pytest.mark.parametrize(("stack", "backend"), SUPERPOSITION)
def test_superposition_stack(
    stack: str, backend: str, name: str, garbage: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_causality(case(stack, backend, monkeypatch), name, garbage)


@pytest.mark.parametrize("garbage", NOT_FINITE)
@pytest.mark.parametrize("name", ["pop", "push", "values"])
@pytest.mark.parametrize(("stack", "backend"), STRATIFICATION)
def test_stratification_stack_and_queue(
    stack: str, backend: str, name: str, garbage: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_causality(case(stack, backend, monkeypatch), name, garbage)


@pytest.mark.parametrize(
    ("name", "garbage"),
    [("values", garbage) for garbage in NOT_FINITE]
    + [(name, garbage) for name in ("push", "replace", "pop") for garbage in (torch.nan, torch.inf)],
)
@pytest.mark.parametrize(("stack", "backend"), NONDETERMINISTIC)
def test_nondeterministic_stack(
    stack: str, backend: str, name: str, garbage: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log weight of -inf is not garbage: it forbids a transition."""
    check_causality(case(stack, backend, monkeypatch), name, garbage)


@pytest.mark.hostile
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("stack", "backend"), SUPERPOSITION + STRATIFICATION + NONDETERMINISTIC)
def test_garbage_from_any_step_on(
    stack: str, backend: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = case(stack, backend, monkeypatch, dtype)
    for name in tried.inputs.keys() - {"bottom"}:
        for first in range(0, tried.length, 1 if tried.length < LONG_LENGTH else 13):
            check_causality(tried, name, torch.nan, first)


@pytest.mark.parametrize("backend", ["reference", "pytorch", "step", *NATIVE])
def test_bottom_that_is_not_a_number_concerns_all_readings_of_its_row(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = case("nd", backend, monkeypatch)
    expected = stack.compute(**stack.inputs)[0]
    stack.inputs["bottom"][0, 1] = torch.nan
    readings = stack.compute(**stack.inputs)[0]
    assert readings[0, ..., 1].isnan().all()
    assert torch.equal(readings[1:], expected[1:])
    assert torch.equal(readings[..., 2:], expected[..., 2:])


@pytest.mark.parametrize("name", ["push", "values"])
def test_decoding_may_become_differentiable_after_garbage(name: str) -> None:
    """Columns of the compiled kernel are handed over to autograd with what is undefined in them."""
    inputs = nondeterministic_inputs(4, torch.float64)
    inputs, _ = spoil(inputs, name, torch.nan, 2)
    push, replace, pop, values, bottom = inputs.values()
    state = NondeterministicStackState.initial(bottom, batch_size=BATCH_SIZE, num_states=2, num_symbols=3)
    for t in range(3):
        reading, state = state.step(push[:, t], replace[:, t], pop[:, t], values[:, t])
    clean = values[:, 1].clone().requires_grad_()
    reading, _ = state.step(push[:, 1], replace[:, 1], pop[:, 1], clean)
    assert reading[0, ..., 1].isnan().all()
    assert reading[0].isnan().all() == (name == "push")
    (gradient,) = torch.autograd.grad(reading[1:].sum(), clean)
    assert gradient.isfinite().all()
    assert not gradient[0].any()


@pytest.mark.parametrize("stack", ["sup", "long-sup", "nd"])
@pytest.mark.parametrize("backend", NATIVE)
def test_gradient_is_not_a_number_if_the_loss_is_not(stack: str, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = case(stack, backend, monkeypatch)
    spoilt, _ = spoil(tried.inputs, "values", torch.nan, 12)
    leaves = {name: x.requires_grad_() for name, x in spoilt.items()}
    readings = tried.compute(**leaves)[0]
    for gradient in torch.autograd.grad(readings.sum(), list(leaves.values())):
        assert gradient[0].isnan().all()
        assert gradient[1:].isfinite().all()
