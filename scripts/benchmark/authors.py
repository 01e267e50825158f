"""The nondeterministic stack and that of its authors, DuSell and Chiang (2024), from a clone of their code.

The clone is of https://github.com/bdusell/stack-attention, and needs ``pip install torch-semiring-einsum``. Its vectors
are logarithms.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import NONDETERMINISTIC

from .agreement import normwise_error, refuse_if_wrong
from .cases import Case, Tensors, Variant, dtype_name
from .tables import Columns, Row, error, sizes
from .timing import Settings, passes

COLUMNS: Columns = {
    "B, n, Q, S, m": sizes,
    "dtype": "dtype",
    "threads": "threads",
    "authors' ms": "authors_ms",
    "ms": "ms",
    "times faster": "times_faster",
    "error": error,
}
CASES = tuple(Case(NONDETERMINISTIC, x) for x in ((10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5)))

Readings = Callable[[Tensors], Tensor]


def readings_of(clone: Path) -> Readings:
    """What computes the readings (B, n, Q, S, m) by the authors' code, from the arguments of our op.

    Raises:
        UserError: if the folder is not a clone of their code, or a package is missing.
    """
    sys.path.insert(0, str(clone / "src"))
    try:
        log = import_module("lib.semiring").log
        new_stack = import_module("stack_rnn_models.vector_nondeterministic_stack").get_vector_nondeterministic_stack
        block_size = import_module("torch_semiring_einsum").AutomaticBlockSize()
    except ImportError as problem:
        raise UserError(
            f"--authors: expected a clone of bdusell/stack-attention that can be imported: {problem}"
        ) from None
    finally:
        sys.path.pop(0)

    def readings(inputs: Tensors) -> Tensor:
        push, values = inputs["push"], inputs["values"]
        batch_size, length, num_states, num_symbols = push.shape[:4]
        stack = new_stack(
            batch_size=batch_size, num_states=num_states, stack_alphabet_size=num_symbols,
            stack_embedding_size=values.shape[2], sequence_length=length, bottom_vector=inputs["bottom"].log(),
            block_size=block_size, dtype=push.dtype, device=push.device, semiring=log,
        )  # fmt: skip
        results = []
        for t in range(length):
            stack.update(*(inputs[name][:, t] for name in ("push", "replace", "pop")), values[:, t].log())
            results.append(stack.reading().view(batch_size, num_states, num_symbols, -1))
        return torch.stack(results, 1)

    return readings


def measure(clone: Path, cases: Sequence[Case], settings: Settings) -> list[Row]:
    """Compare readings and gradients in float64, and then measure both passes.

    Raises:
        Disagreement: if they differ.
        UserError: see :func:`readings_of`.
    """
    by_authors, rows = readings_of(clone), []
    ways: dict[str, Callable[[Case, Tensors], Tensor]] = {
        "ours": Variant("auto").readings,
        "authors": lambda _, inputs: by_authors(inputs),
    }
    for case in cases:
        largest = _largest_error(ways, case, settings.device)
        for dtype in settings.dtypes:
            inputs = case.inputs(dtype, settings.device)
            leaves, cotangent = [*inputs.values()], case.cotangent(inputs)
            runs = {
                name: passes(partial(read, case, inputs), leaves, settings.timer, cotangent)
                for name, read in ways.items()
            }
            for threads in settings.each_number_of_threads(f"{case} and the authors' code, {dtype_name(dtype)}"):
                times = {name: 1e3 * sum(parts) for name, parts in settings.least_times(runs).items()}
                rows.append({
                    "sizes": case.by_axis(), "dtype": dtype_name(dtype), "threads": threads, "error": largest,
                    "authors_ms": times["authors"], "ms": times["ours"],
                    "times_faster": times["authors"] / times["ours"],
                })  # fmt: skip
    return rows


def _largest_error(ways: dict[str, Callable[[Case, Tensors], Tensor]], case: Case, device: torch.device) -> float:
    """Of readings and gradients in float64, relative to the largest element of each."""
    inputs = case.inputs(torch.float64, device)
    results = {}
    for name, read in ways.items():
        readings = read(case, inputs)
        results[name] = [readings.detach(), *torch.autograd.grad(readings, [*inputs.values()], case.cotangent(inputs))]
    pairs = zip(results["ours"], results["authors"], strict=True)
    largest = max(normwise_error(ours, authors) for ours, authors in pairs)
    refuse_if_wrong(f"{case} of the authors: readings or gradients differ", largest, torch.float64)
    return largest
