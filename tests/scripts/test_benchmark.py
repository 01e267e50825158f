"""scripts/benchmark.py in its quick mode, and what it must refuse."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import Backend, stratification
from fairseq_stack.ops._native import library
from scripts.benchmark import training
from scripts.benchmark.cases import Case, axes_of, first_of_each_op, measurable
from scripts.benchmark.command import main
from scripts.benchmark.decoding import Beam
from scripts.benchmark.timing import Timer
from scripts.benchmark.training import WORKLOADS, Workload

STACKS = first_of_each_op()
TABLES = [
    *(f"## Stack {name}: forward and backward pass" for name in STACKS),
    *(f"## Decoding with the stack {name}: each step advances a beam of B rows" for name in STACKS),
    "## Training steps",
]


def test_everything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a language model and a translation model; building a configuration takes a second for each."""
    workloads = [workload for workload in WORKLOADS if workload.name in ("cfl", "small")]
    monkeypatch.setattr(training, "WORKLOADS", workloads)
    path = tmp_path / "figures.json"
    assert main(["--quick", "--json", str(path)]) == 0
    check_output(capsys.readouterr().out, path, workloads)


def check_output(printed: str, path: Path, workloads: Sequence[Workload]) -> None:
    """Assert that all tables are printed, and that the file of figures, which is alone in its folder, has them all."""
    lines = printed.splitlines()
    assert [line for line in lines if line.startswith("## ")] == TABLES
    figures = json.loads(path.read_text())
    assert f"- torch: {torch.__version__}" in lines
    assert figures["machine"]["torch"] == torch.__version__
    for name in STACKS:
        rows = [row for row in figures["stacks"] if row["stack"] == name]
        assert [row["backend"] for row in rows] == expected_variants(name)
        assert all([*row["sizes"]] == [*axes_of(measurable()[name])] for row in rows)
        assert all(row["forward_ms"] > 0 < row["backward_ms"] for row in rows)
        assert all(row["extra_megabytes"] >= 0 and row["error"] < 2e-5 for row in rows)
    assert [row["stack"] for row in figures["decoding"]] == [*STACKS]
    assert all(row["steps_per_second"] > 0 for row in figures["decoding"])
    models = [name for workload in workloads for name in workload.models]
    assert [row["model"] for row in figures["training"]] == models
    for row in figures["training"]:
        parts = row["forward_ms"] + row["backward_ms"] + row["update_ms"]
        assert row["step_ms"] == pytest.approx(parts)
        assert (row["times_tf"] == 1) == ("_tf_" in row["model"])
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def expected_variants(stack: str) -> list[str]:
    compiled = library()
    native = () if compiled is None else tuple(f"native {name}" for name in compiled.instruction_sets)
    by_backend = {"reference": (), "pytorch": ("pytorch",), "triton": (), "native": native}
    return [name for backend in measurable()[stack].op.backends for name in by_backend[backend]]


class _WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return 1.001 * gradient


Compute = Callable[..., Tensor]


def right(pop: Tensor, push: Tensor, values: Tensor, **options: float) -> Tensor:
    return stratification.stratification_stack_pytorch(pop, push, values, **options)


def wrong_gradient(pop: Tensor, push: Tensor, values: Tensor, **options: float) -> Tensor:
    return right(pop, _WrongGradient.apply(push), values, **options)


def wrong_at_length_twelve(pop: Tensor, push: Tensor, values: Tensor, **options: float) -> Tensor:
    return right(pop, push, values, **options) + (1e-3 if pop.shape[1] == 12 else 0)


@pytest.mark.parametrize(
    ("compute", "complaint"),
    [
        (wrong_gradient, "new float32 is wrong: for strat (2, 9, 5), gradients of push differ"),
        (wrong_at_length_twelve, "new float32 is wrong: for strat (2, 12, 5), readings differ"),
    ],
    ids=["gradient", "timed-size"],
)
def test_wrong_backend_is_refused(
    compute: Compute,
    complaint: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(stratification.BACKENDS, "new", Backend("new", compute))
    assert main(["--quick", "--only", "strat", "--json", str(tmp_path / "figures.json")]) == 1
    out, err = capsys.readouterr()
    assert err.splitlines()[-1].startswith(f"benchmark.py: error: {complaint} from ")
    assert "## " not in out
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("length", "last"), [(1, 1), (9, 1), (40, 4)])
def test_the_last_steps_of_decoding(length: int, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that counts steps."""
    beam = Beam(Case(measurable()["sup"], (2, length, 3)), torch.float64, torch.device("cpu"))
    taken: list[Tensor] = []
    step = beam._module.step_reading

    def counted(*arguments: Any) -> Any:
        taken.append(arguments[0])
        return step(*arguments)

    monkeypatch.setattr(beam._module, "step_reading", counted)
    assert beam.run(Timer(torch.device("cpu"), lambda: float(len(taken))))() == (length, last)
