"""The checks of arguments that all stacks share, through the ops and alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack import ops
from fairseq_stack.ops import (
    NondeterministicStackState,
    QueueState,
    StratificationStackState,
    SuperpositionStackState,
    _backends,
)
from fairseq_stack.ops._backends import Backend, by_name, choose_backend, native_obstacle
from fairseq_stack.ops._native import Availability

Arguments = dict[str, Any]

ARGUMENTS: dict[str, dict[str, tuple[int, ...]]] = {
    "superposition_stack": {"actions": (2, 5, 3), "values": (2, 5, 4)},
    "stratification_stack": {"pop": (2, 5), "push": (2, 5), "values": (2, 5, 4)},
    "queue": {"pop": (2, 5), "push": (2, 5), "values": (2, 5, 4)},
    "nondeterministic_stack": {
        "push": (2, 5, 2, 3, 2, 3),
        "replace": (2, 5, 2, 3, 2, 3),
        "pop": (2, 5, 2, 3, 2),
        "values": (2, 5, 4),
        "bottom": (2, 4),
    },
    "SuperpositionStackState": {"actions": (2, 3), "value": (2, 4)},
    "StratificationStackState": {"pop": (2,), "push": (2,), "value": (2, 4)},
    "QueueState": {"pop": (2,), "push": (2,), "value": (2, 4)},
    "NondeterministicStackState": {
        "push": (2, 2, 3, 2, 3), "replace": (2, 2, 3, 2, 3), "pop": (2, 2, 3, 2), "value": (2, 4),
    },
}  # fmt: skip
STATES: dict[str, Any] = {
    "SuperpositionStackState": SuperpositionStackState.initial(batch_size=2, size=4),
    "StratificationStackState": StratificationStackState.initial(batch_size=2, size=4),
    "QueueState": QueueState.initial(batch_size=2, size=4),
    "NondeterministicStackState": NondeterministicStackState.initial(
        torch.zeros(4), batch_size=2, num_states=2, num_symbols=3
    ),
}
OPS = [op for op in ARGUMENTS if op not in STATES]
EACH_ARGUMENT = [(op, name) for op, shapes in ARGUMENTS.items() for name in shapes]
EACH_AXIS = [
    (op, name, axis) for op, shapes in ARGUMENTS.items() for name, shape in shapes.items() for axis in range(len(shape))
]
each_state = pytest.mark.parametrize("state", STATES.values(), ids=STATES)


def call(op: str, arguments: Arguments) -> Any:
    return STATES[op].step(**arguments) if op in STATES else getattr(ops, op)(**arguments)


def good_arguments(op: str) -> Arguments:
    return {name: torch.rand(shape) for name, shape in ARGUMENTS[op].items()}


WRONG: list[tuple[Callable[[Tensor], Any], str]] = [
    (lambda x: x.unsqueeze(0), "{name}: expected shape .*, got {more}"),
    (Tensor.to_sparse, "{name}: expected a dense tensor of shape .*, got .* torch.sparse_coo"),
    (
        lambda x: torch.nested.nested_tensor([torch.rand(2), torch.rand(3)]),
        "{name}: expected a dense tensor of shape .*, got .* nested",
    ),
    (Tensor.long, "{name}: expected a floating-point dtype, got torch.int64"),
    (Tensor.double, r"\w+: expected dtype torch.float(32|64) like \w+, got torch.float(64|32)"),
    (lambda x: x.to("meta"), r"\w+: expected device (cpu|meta) like \w+, got (meta|cpu)"),
    (Tensor.tolist, "{name}: expected a tensor of shape .*, got list"),
]


@pytest.mark.parametrize(("op", "name"), EACH_ARGUMENT)
def test_wrong_arguments(op: str, name: str) -> None:
    for change, message in WRONG:
        arguments = good_arguments(op)
        more = re.escape(str((1, *arguments[name].shape)))
        arguments[name] = change(arguments[name])
        with pytest.raises(ValueError, match=f"^{message.format(name=name, more=more)}$"):
            call(op, arguments)


@pytest.mark.parametrize(("op", "name", "axis"), EACH_AXIS)
def test_wrong_size_of_any_axis(op: str, name: str, axis: int) -> None:
    arguments = good_arguments(op)
    arguments[name] = torch.cat([arguments[name]] * 2, axis)
    first, last = next(iter(arguments)), next(reversed(arguments))
    if name in ("values", "value") and axis == arguments[name].dim() - 1 and op not in STATES and name == last:
        assert call(op, arguments).size(-1) == 8  # nothing else has this size
        return
    # The first argument of an op sets the sizes, so that another one, or another axis of it, is found wrong.
    with pytest.raises(ValueError, match=r"^\w+: expected shape \(.*, got \(") as error:
        call(op, arguments)
    if name != first and not (name == "values" and axis == 2):
        assert str(error.value).startswith(f"{name}: ")


@pytest.mark.parametrize("op", OPS)
def test_tensors_without_data(op: str) -> None:
    arguments = {name: tensor.to("meta") for name, tensor in good_arguments(op).items()}
    with pytest.raises(ValueError, match=rf"^{op}: expected tensors with data, got device meta$"):
        call(op, arguments)


@pytest.mark.parametrize("op", OPS)
def test_unknown_backend(op: str) -> None:
    with pytest.raises(ValueError, match=rf"^{op}: backend must be one of 'auto', .*, got 'pytorsh'$"):
        call(op, good_arguments(op) | {"backend": "pytorsh"})


@pytest.mark.parametrize("op", STATES)
def test_steps_in_another_precision_than_the_state(op: str) -> None:
    arguments = {name: tensor.double() for name, tensor in good_arguments(op).items()}
    with pytest.raises(
        ValueError,
        match=r"^\w+: expected dtype torch.float32 or a narrower dtype like the state, got torch.float64$",
    ):
        call(op, arguments)


@each_state
@pytest.mark.parametrize(
    "index",
    [torch.tensor([0.0]), torch.tensor([0], dtype=torch.int32), torch.tensor([[0]]), torch.tensor(0), [0]],
    ids=["float", "int32", "two-axes", "no-axis", "list"],
)
def test_reorder_with_a_bad_index(state: SuperpositionStackState, index: Tensor) -> None:
    with pytest.raises(ValueError, match=r"^index: expected a one-dimensional LongTensor, got "):
        state.reorder(index)


@pytest.mark.parametrize("rows", [[0, 2], [-1, 0]])
@each_state
def test_reorder_with_an_index_out_of_range(state: SuperpositionStackState, rows: list[int]) -> None:
    with pytest.raises(ValueError, match=rf"^index: expected row numbers from 0 to 1, got {re.escape(str(rows))}$"):
        state.reorder(torch.tensor(rows))


@each_state
def test_reorder_with_an_index_elsewhere(state: SuperpositionStackState) -> None:
    with pytest.raises(ValueError, match=r"^index: expected device cpu like the state, got meta$"):
        state.reorder(torch.zeros(2, dtype=torch.long, device="meta"))


def test_bottom_of_the_state() -> None:
    for bottom in (torch.zeros(3, 4), torch.zeros(1, 2, 4), torch.zeros(4).long(), torch.tensor(0.0)):
        with pytest.raises(ValueError, match=r"^bottom: expected "):
            NondeterministicStackState.initial(bottom, batch_size=2, num_states=2, num_symbols=3)


CPU, CUDA = torch.device("cpu"), torch.device("cuda")
IMPLEMENTATIONS = by_name(Backend("native", min, native_obstacle), Backend("pytorch", max))


def test_choose_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backends, "library", lambda: object())
    assert choose_backend("op", "auto", IMPLEMENTATIONS, CPU) is min
    assert choose_backend("op", "auto", IMPLEMENTATIONS, CUDA) is max
    assert choose_backend("op", "auto", by_name(IMPLEMENTATIONS["pytorch"]), CPU) is max
    assert choose_backend("op", "pytorch", IMPLEMENTATIONS, CPU) is max
    with pytest.raises(ValueError, match=r"^op: backend must be one of 'auto', 'native', 'pytorch', got 'quick'$"):
        choose_backend("op", "quick", IMPLEMENTATIONS, CPU)
    with pytest.raises(ValueError, match=r"^op: backend 'native' needs tensors on the CPU, got cuda$"):
        choose_backend("op", "native", IMPLEMENTATIONS, CUDA)


def test_choose_backend_without_the_compiled_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_backends, "library", lambda: None)
    monkeypatch.setattr(_backends, "availability", lambda: Availability(None, "no compiler"))
    assert choose_backend("op", "auto", IMPLEMENTATIONS, CPU) is max
    with pytest.raises(ValueError, match=r"^op: backend 'native' cannot be used: no compiler$"):
        choose_backend("op", "native", IMPLEMENTATIONS, CPU)


@pytest.mark.parametrize(
    ("version", "enabled", "error", "problem"),
    [
        ("3.5.0", None, None, None),
        ("3.10.1+rocm", "1", None, None),
        ("4.0.0", None, None, None),
        ("3.4.9", None, None, "it needs triton 3.5 or later, and 3.4.9 is installed"),
        (None, None, None, "the package triton is not installed"),
        ("3.6.0", "0", None, "FAIRSEQ_STACK_TRITON is 0"),
        ("3.6.0", None, "Failed to find C compiler.", "triton does not work (Failed to find C compiler.)"),
    ],
)
def test_obstacles_of_triton(
    version: str | None,
    enabled: str | None,
    error: str | None,
    problem: str | None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A GPU without Triton has PyTorch, and the log says so."""

    def run_a_kernel(device: torch.device) -> None:
        if error is not None:
            raise RuntimeError(error)

    monkeypatch.delenv("FAIRSEQ_STACK_TRITON", raising=False)
    if enabled is not None:
        monkeypatch.setenv("FAIRSEQ_STACK_TRITON", enabled)
    spec = None if version is None else ModuleSpec("triton", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(__version__=version))
    trial = SimpleNamespace(run_a_kernel=run_a_kernel)
    monkeypatch.setitem(sys.modules, "fairseq_stack.ops._triton.trial", trial)
    obstacle = None if problem is None else f"cannot be used: {problem}"
    assert _backends._find_obstacle_of_triton.__wrapped__(torch.device("cuda", 0)) == obstacle
    said = [f"stacks on cuda:0 run in PyTorch, several times slower: {problem}"]
    assert caplog.messages == ([] if problem is None else said)
