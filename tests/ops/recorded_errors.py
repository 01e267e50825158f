"""How exact the stacks are: their errors on typical inputs, compared with the recorded ones.

    python -m tests.ops.recorded_errors    # measures them, and writes them to tests/ops/errors.tsv

The error of a tensor is the root mean square of its errors over the root mean square of its values, against the
reference in float64 with the same inputs. A column of the record is a backend, or an instruction set of the compiled
one, and a dtype. The column of the reference in float32 says what the equations themselves lose in float32.
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import (
    ControllerSetup,
    NondeterministicStackState,
    neural_stack,
    nondeterministic_stack,
    queue,
    stratification_stack,
    superposition_stack,
)
from fairseq_stack.ops._native import library
from fairseq_stack.ops.nondeterministic import reference, state
from tests.helpers import INSTRUCTION_SETS, use_backend

RECORD = Path(__file__).with_name("errors.tsv")
REFERENCE = "reference float32"
MOST_GROWTH = 4
MOST_BESIDE_REFERENCE = 2

Stack = Callable[..., Tensor]
Errors = dict[str, dict[str, float]]  # by column, and by the name of a tensor


class Case(NamedTuple):
    """A stack with random inputs.

    Attributes:
        stack: takes a keyword ``backend``.
        reference: the same by its equations, in the dtype of the inputs.
        names: of the inputs.
        inputs: draws them.
        backends: what is measured.
    """

    stack: Stack
    reference: Stack
    names: tuple[str, ...]
    inputs: Callable[[], list[Tensor]]
    backends: tuple[str, ...]


def nondeterministic_reference(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    start: Tensor | None = None,
    window: int | None = None,
) -> Tensor:
    vectors = torch.cat([bottom.expand(len(values), -1)[:, None], values], 1)
    return reference._readings(push, replace, pop, vectors, window, start)[0]


def nondeterministic_steps(
    push: Tensor, replace: Tensor, pop: Tensor, values: Tensor, bottom: Tensor, start: Tensor, *, backend: str
) -> Tensor:
    with pytest.MonkeyPatch.context() as patch:
        if backend == "pytorch":
            patch.setattr(state, "library", lambda: None)
        batch_size, num_states, num_symbols = start.shape
        stack = NondeterministicStackState.initial(
            bottom, batch_size=batch_size, num_states=num_states, num_symbols=num_symbols, start=start
        )
        transitions = torch.cat([push.flatten(4), replace.flatten(4), pop], -1).flatten(2)
        readings = []
        for log_weights, value in zip(transitions.unbind(1), values.unbind(1), strict=True):
            reading, stack = stack.step_joined(log_weights, value)
            readings.append(reading)
    return torch.stack(readings, 1)


def superposition_reference(*inputs: Tensor) -> Tensor:
    return superposition_stack(*inputs, backend="reference")


def nondeterministic_case(
    length: int, num_states: int, num_symbols: int, size: int, std: float, window: int | None = None
) -> Case:
    def inputs() -> list[Tensor]:
        source, targets = (2, length, num_states, num_symbols), (num_states, num_symbols)
        log_weights = [torch.randn(*source, *target).mul(std) for target in (targets, targets, (num_states,))]
        return [*log_weights, torch.rand(2, length, size), torch.rand(size)]

    names = "push", "replace", "pop", "values", "bottom"
    backends = "pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)
    limited = functools.partial(nondeterministic_stack, window=window)
    return Case(limited, functools.partial(nondeterministic_reference, window=window), names, inputs, backends)


def steps_case(length: int, num_states: int, num_symbols: int, size: int, std: float) -> Case:
    """Steps with joined log weights, from random start configurations."""
    whole = nondeterministic_case(length, num_states, num_symbols, size, std)

    def inputs() -> list[Tensor]:
        return [*whole.inputs(), torch.randn(2, num_states, num_symbols).mul(std)]

    return Case(nondeterministic_steps, nondeterministic_reference, (*whole.names, "start"), inputs, whole.backends)


def superposition_case(length: int, size: int, std: float) -> Case:
    def inputs() -> list[Tensor]:
        return [torch.randn(5, length, 3).mul(std).softmax(-1), torch.rand(5, length, size)]

    backends = "pytorch", *(f"native-{name}" for name in INSTRUCTION_SETS)
    return Case(superposition_stack, superposition_reference, ("actions", "values"), inputs, backends)


def items_case(stack: Stack, length: int, size: int) -> Case:
    """A stack or a queue of items with strengths."""

    def inputs() -> list[Tensor]:
        return [torch.rand(3, length), torch.rand(3, length), torch.rand(3, length, size)]

    return Case(stack, functools.partial(stack, backend="reference"), ("pop", "push", "values"), inputs, ("pytorch",))


def network_case(controller: str, memory: str, gates: int, length: int, *, is_buffered: bool = False) -> Case:
    """A neural stack of the sizes of Hao et al. (2018): k = 3, m = 2, h = 10."""
    setup = ControllerSetup(controller, memory, 2, is_buffered=is_buffered)
    rows = setup.num_sigmoids + 3
    shapes: list[tuple[int, ...]] = [(rows, 10 if gates else 5), (rows,)]
    if gates:
        shapes += [(10 * gates, 5), (10 * gates, 10), (10 * gates,), (10 * gates,)]

    def inputs() -> list[Tensor]:
        return [torch.rand(3, length, 3), *(torch.randn(shape).mul(0.5) for shape in shapes)]

    def read(x: Tensor, weight: Tensor, bias: Tensor, *cell: Tensor, backend: str) -> Tensor:
        return torch.cat([y.flatten(1) for y in neural_stack(x, weight, bias, cell, setup, length, backend=backend)], 1)

    names = "x", "weight", "bias", *("weight_ih", "weight_hh", "bias_ih", "bias_hh")[: len(shapes) - 2]
    backends = tuple(f"native-{name}" for name in INSTRUCTION_SETS)
    return Case(read, functools.partial(read, backend="reference"), names, inputs, backends)


# The sizes are those of the papers' models; the reference takes long for long sequences.
LARGE_CASES = {f"nd-3-3-10 n=32 std={std}": nondeterministic_case(32, 3, 3, 10, std) for std in (1, 3, 10)}
CASES = {
    **{f"nd-3-3-5 n=12 std={std}": nondeterministic_case(12, 3, 3, 5, std) for std in (1, 3, 10)},
    **{f"nd-2-3-5 n=12 std={std}": nondeterministic_case(12, 2, 3, 5, std) for std in (1, 3, 10)},
    **{f"sup-32 n=80 std={std}": superposition_case(80, 32, std) for std in (1, 3, 10)},
    **{f"sup-511 n=40 std={std}": superposition_case(40, 511, std) for std in (1, 3, 10)},
    "strat-32 n=32": items_case(stratification_stack, 32, 32),
    **{f"nd-2-3-5@6 n=12 std={std}": nondeterministic_case(12, 2, 3, 5, std, window=6) for std in (1, 3, 10)},
    **{f"nd-2-3-5 steps n=12 std={std}": steps_case(12, 2, 3, 5, std) for std in (1, 10)},
    "queue-32 n=32": items_case(queue, 32, 32),
    "linear stack n=12": network_case("linear", "stack", 0, 12),
    "lstm queue n=12": network_case("lstm", "queue", 4, 12),
    "gru stack buffered n=12": network_case("gru", "stack", 3, 12, is_buffered=True),
}


def measure(case: Case) -> Errors:
    """The errors of a case with all backends that this machine has."""
    torch.manual_seed(0)
    inputs = case.inputs()
    cotangent = torch.randn_like(case.reference(*inputs))
    truth = _results(case, case.reference, inputs, cotangent, torch.float64)
    results = {REFERENCE: _results(case, case.reference, inputs, cotangent, torch.float32)}
    for backend in filter(_is_available, case.backends):
        with pytest.MonkeyPatch.context() as patch:
            stack = functools.partial(case.stack, backend=use_backend(backend, patch))
            results[f"{backend} float32"] = _results(case, stack, inputs, cotangent, torch.float32)
            results[f"{backend} float64"] = _results(case, stack, inputs, cotangent, torch.float64)
    return {column: _errors(tensors, truth) for column, tensors in results.items()}


def _is_available(backend: str) -> bool:
    loaded = library()
    return backend == "pytorch" or (loaded is not None and backend.removeprefix("native-") in loaded.instruction_sets)


def _results(
    case: Case, stack: Stack, inputs: list[Tensor], cotangent: Tensor, dtype: torch.dtype
) -> dict[str, Tensor]:
    """The readings and all gradients."""
    inputs = [x.to(dtype).requires_grad_() for x in inputs]
    readings = stack(*inputs)
    gradients = torch.autograd.grad((readings * cotangent.to(dtype)).sum(), inputs)
    return {"readings": readings.detach(), **dict(zip(case.names, gradients, strict=True))}


def _errors(results: dict[str, Tensor], truth: dict[str, Tensor]) -> dict[str, float]:
    return {name: float((results[name] - x).norm() / x.norm()) for name, x in truth.items()}


def problems(measured: Errors, written: Errors) -> list[str]:
    """What is wrong with the errors of a case, given those on record; less than one rounding does not count."""
    found = []
    for column, errors in measured.items():
        dtype = torch.float32 if column.endswith("float32") else torch.float64
        rounding = torch.finfo(dtype).eps / 2
        for name, error in errors.items():
            before = written.get(column, {}).get(name)
            reference = measured[REFERENCE][name]
            if before is None:
                found.append(f"{name}, {column}: not in the record")
            elif not error <= MOST_GROWTH * max(before, rounding):
                found.append(f"{name}, {column}: error {error:.1e}, in the record {before:.1e}")
            if dtype == torch.float32 and not error <= MOST_BESIDE_REFERENCE * max(reference, rounding):
                found.append(f"{name}, {column}: error {error:.1e}, reference in float32 {reference:.1e}")
    return found


def read() -> dict[str, Errors]:
    """The record, by case."""
    record: dict[str, Errors] = {}
    with RECORD.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            case, name = row.pop("case"), row.pop("tensor")
            for column, error in row.items():
                if error:
                    record.setdefault(case, {}).setdefault(column, {})[name] = float(error)
    return record


def write(record: dict[str, Errors]) -> None:
    """Write the record: a row for each case and tensor."""
    columns = list(dict.fromkeys(column for errors in record.values() for column in errors))
    with RECORD.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(["case", "tensor", *columns])
        for case, errors in record.items():
            for name in errors[REFERENCE]:
                cells = (errors.get(column, {}).get(name) for column in columns)
                writer.writerow([case, name, *("" if error is None else f"{error:.1e}" for error in cells)])


def main() -> None:
    """Measure all cases, and write them down; what this machine cannot measure stays as it was."""
    torch.set_num_threads(1)
    record = read() if RECORD.exists() else {}
    write({name: {**record.get(name, {}), **measure(case)} for name, case in (CASES | LARGE_CASES).items()})


if __name__ == "__main__":
    main()
