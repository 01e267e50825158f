"""Stacks next to the code of DuSell and Chiang, taken from clones of it.

Layers are those of https://github.com/bdusell/stack-attention (2024); LSTMs, in :mod:`.authors_lstms`, those of
https://github.com/bdusell/nondeterministic-stack-rnn (2023). Both need ``pip install torch-semiring-einsum attrs
more-itertools``.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from fairseq_stack.errors import UserError
from fairseq_stack.kinds import NONDETERMINISTIC, SUPERPOSITION

from .agreement import normwise_error, refuse_if_wrong
from .cases import Case, Tensors, Variant, dtype_name
from .tables import Columns, Row, error
from .timing import Run, Settings, passes

COLUMNS: Columns = {
    "model": "model",
    "sizes": lambda row: ", ".join(f"{axis} {size}" for axis, size in row["sizes"].items()),
    "dtype": "dtype",
    "threads": "threads",
    "authors' ms": "authors_ms",
    "ms": "ms",
    "times faster": "times_faster",
    "error": error,
}
LAYERS = (
    *(Case(NONDETERMINISTIC, sizes) for sizes in ((10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5))),
    *(Case(SUPERPOSITION, sizes) for sizes in ((10, 60, 32), (16, 30, 511))),
)
MOST_BYTES = 256 * 2**20
"""What one sum of products of the authors' code may take."""

Readings = Callable[[Tensors], Tensor]


class Way(NamedTuple):
    """A way to compute what is compared.

    Attributes:
        outputs: computes them, (B, n, ...).
        leaves: with respect to what they are differentiated.
        arranged: the gradients, arranged as ours are.
    """

    outputs: Callable[[], Tensor]
    leaves: Sequence[Tensor]
    arranged: Callable[[Sequence[Tensor]], Sequence[Tensor]] = list


Ways = Callable[[torch.dtype], tuple[Way, Way]]


class Comparison(NamedTuple):
    """What is compared.

    Attributes:
        model: its name.
        sizes: by axis.
        ways: ours and the authors', in a dtype, on the same inputs and parameters.
        checked: the same, of what has to agree in float64 before anything is measured.
    """

    model: str
    sizes: Mapping[str, int]
    ways: Ways
    checked: Ways


@contextlib.contextmanager
def importing_from(clone: Path) -> Iterator[None]:
    """Import modules of a clone. Those of another clone, which have the same names, can be imported afterwards.

    Raises:
        UserError: within the block, something cannot be imported.
    """
    source, loaded = clone / "src", {*sys.modules}
    sys.path.insert(0, str(source))
    try:
        yield
    except ImportError as problem:
        raise UserError(f"--authors: expected a clone that can be imported: {clone}: {problem}") from None
    finally:
        sys.path.pop(0)
        for name in {*sys.modules} - loaded:
            if (source / name.partition(".")[0]).exists():
                del sys.modules[name]


def automatic_block_size() -> Any:
    """How the authors' code divides sums of products."""
    return import_module("torch_semiring_einsum").AutomaticBlockSize(max_cpu_bytes=MOST_BYTES)


def layers(clone: Path, cases: Sequence[Case], device: torch.device) -> list[Comparison]:
    """The stacks of stack attention.

    Raises:
        UserError: the folder is not a clone of bdusell/stack-attention, or a package is missing.
    """
    with importing_from(clone):
        readings = {NONDETERMINISTIC: _nondeterministic(), SUPERPOSITION: _superposition()}
    ways = [partial(_layer, case, readings[case.kind], device) for case in cases]
    return [Comparison(f"layer {x.kind.name}", x.by_axis(), way, way) for x, way in zip(cases, ways, strict=True)]


def _layer(case: Case, readings: Readings, device: torch.device, dtype: torch.dtype) -> tuple[Way, Way]:
    inputs = case.inputs(dtype, device)
    leaves = [*inputs.values()]
    return Way(lambda: Variant("auto").readings(case, inputs), leaves), Way(lambda: readings(inputs), leaves)


def _nondeterministic() -> Readings:
    """The readings (B, n, Q, S, m), from the arguments of our op. The authors' vectors are logarithms."""
    log, block_size = import_module("lib.semiring").log, automatic_block_size()
    new_stack = import_module("stack_rnn_models.vector_nondeterministic_stack").get_vector_nondeterministic_stack

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


def _superposition() -> Readings:
    """The readings (B, n, m), from the arguments of our op."""
    new_stack = import_module("stack_rnn_models.joulin_mikolov").construct_stack

    def readings(inputs: Tensors) -> Tensor:
        actions, values = inputs["actions"], inputs["values"]
        batch_size, length, size = values.shape
        stack = new_stack(batch_size, size, length + 1, length + 1, values.device)
        results = []
        for t in range(length):
            push, no_op, pop = (action[:, None].expand(-1, size) for action in actions[:, t].unbind(1))
            stack = stack.next(push, pop, no_op, values[:, t])
            results.append(stack.reading())
        return torch.stack(results, 1)

    return readings


def measure(comparisons: Sequence[Comparison], settings: Settings) -> Iterator[Row]:
    """Compare outputs and gradients in float64, and then measure both passes.

    Raises:
        Disagreement: if they differ.
    """
    errors = [_largest_error(comparison) for comparison in comparisons]
    for comparison, wrong in zip(comparisons, errors, strict=True):
        for dtype in settings.dtypes:
            runs = _runs(comparison, dtype, settings)
            what = f"{comparison.model} next to the authors' code, {dtype_name(dtype)}"
            for threads in settings.each_number_of_threads(what):
                times = {name: 1e3 * sum(parts) for name, parts in settings.least_times(runs).items()}
                yield {
                    "model": comparison.model, "sizes": comparison.sizes, "dtype": dtype_name(dtype),
                    "threads": threads, "error": wrong, "authors_ms": times["authors"], "ms": times["ours"],
                    "times_faster": times["authors"] / times["ours"],
                }  # fmt: skip


def _runs(comparison: Comparison, dtype: torch.dtype, settings: Settings) -> dict[str, Run]:
    within = partial(_by_default, dtype)
    with within():
        ways = zip(("ours", "authors"), comparison.ways(dtype), strict=True)
    return {name: passes(way.outputs, way.leaves, settings.timer, within=within) for name, way in ways}


def _largest_error(comparison: Comparison) -> float:
    """Of outputs and gradients in float64, relative to the largest element of each."""
    with _by_default(torch.float64):
        results = [_results(way) for way in comparison.checked(torch.float64)]
    largest = max(normwise_error(ours, authors) for ours, authors in zip(*results, strict=True))
    refuse_if_wrong(f"{comparison.model}: outputs or gradients differ from the authors'", largest, torch.float64)
    return largest


def _results(way: Way) -> list[Tensor]:
    """The outputs and the gradients of a weighted sum of them."""
    outputs = way.outputs()
    weights = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(1), dtype=outputs.dtype)
    return [outputs.detach(), *way.arranged(torch.autograd.grad(outputs, way.leaves, weights.to(outputs.device)))]


@contextlib.contextmanager
def _by_default(dtype: torch.dtype) -> Iterator[None]:
    """Give this dtype to tensors for which the authors' code names none."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
