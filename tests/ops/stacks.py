"""The stacks and queues for the tests that ask the same of each: their random inputs, and all ways to compute readings.

A way is a backend, such as ``native-avx2``, or the steps of a state, such as ``steps-avx2``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from fairseq_stack.ops import (
    DeltaRuleState,
    NondeterministicStackState,
    PointerStackState,
    QueueState,
    StratificationStackState,
    SuperpositionStackState,
    delta_rule,
    nondeterministic_stack,
    pointer_stack,
    queue,
    stratification_stack,
    superposition_stack,
)
from fairseq_stack.ops._arguments import without_autocast
from fairseq_stack.ops.nondeterministic import WITH_LIMITED_MEMORY, _panels
from fairseq_stack.ops.nondeterministic import gpu as nondeterministic_gpu
from fairseq_stack.ops.nondeterministic import state as nondeterministic_state
from fairseq_stack.ops.superposition import state as superposition_state
from fairseq_stack.ops.superposition.gpu import superposition_stack_triton
from tests.helpers import INSTRUCTION_SETS, use_backend
from tests.ops.gpus import DEVICE

NATIVE = tuple(f"native-{name}" for name in INSTRUCTION_SETS)
FAST = ("pytorch", *NATIVE)
STEPS = ("steps-pytorch", *(f"steps-{name}" for name in INSTRUCTION_SETS))
Q, S = 2, 3
CELLS = 4


@dataclass(frozen=True)
class Stack:
    """A stack or a queue.

    Attributes:
        names: of the inputs, which have an axis of steps, except for the bottom.
        compute: the public function.
        draw: random inputs in float64, for B sequences of n steps and vectors of size m.
        begin: the state before the first step, for inputs.
        ways: to compute readings, except for Triton's.
        triton: the kernels for GPUs.
        golden: patterns of golden files.
        tolerance: of gradients.
    """

    names: tuple[str, ...]
    compute: Callable[..., Tensor]
    draw: Callable[[int, int, int], list[Tensor]]
    begin: Callable[[Sequence[Tensor]], Any]
    ways: tuple[str, ...]
    triton: Callable[..., Tensor] | None = None
    golden: tuple[str, ...] = ()
    tolerance: float = 1e-12

    @property
    def num_stepped(self) -> int:
        """How many inputs have an axis of steps."""
        return len(self.names) - len({"bottom", "kappa"} & set(self.names))

    def random_inputs(
        self, batch_size: int, length: int, size: int = 5, *, dtype: torch.dtype = torch.float64
    ) -> list[Tensor]:
        """Inputs with gradients."""
        return [x.to(dtype).requires_grad_() for x in self.draw(batch_size, length, size)]

    def step_through(self, inputs: Sequence[Tensor], state: Any) -> tuple[Tensor, Any]:
        """The readings of all steps, and the state after them."""
        readings = []
        for now in zip(*(x.unbind(1) for x in inputs[: self.num_stepped]), strict=True):
            reading, state = state.step(*now)
            readings.append(reading)
        with without_autocast(readings[0].device):  # which has no stack for float16
            return torch.stack(readings, 1), state

    def part(self, inputs: Sequence[Tensor], steps: slice, rows: Tensor | slice = slice(None)) -> list[Tensor]:
        """The inputs of some steps and some batch rows."""
        stepped, others = inputs[: self.num_stepped], inputs[self.num_stepped :]
        by_row = [x[rows] if x.dim() == 2 or "kappa" in self.names else x for x in others]
        return [*(x[rows, steps] for x in stepped), *by_row]


def actions(batch_size: int, length: int, size: int) -> list[Tensor]:
    """Of the superposition stack, with its values."""
    probabilities = torch.randn(batch_size, length, 3, dtype=torch.float64).mul(2).softmax(2)
    return [probabilities, torch.randn(batch_size, length, size, dtype=torch.float64)]


def strengths(batch_size: int, length: int, size: int) -> list[Tensor]:
    """Pops and pushes, and values."""
    pop, push = torch.rand(2, batch_size, length, dtype=torch.float64)
    return [pop, push, torch.randn(batch_size, length, size, dtype=torch.float64)]


def strengths_of_reading(batch_size: int, length: int, size: int) -> list[Tensor]:
    """The same, and read strengths from 0 to 3."""
    return [*strengths(batch_size, length, size), 3 * torch.rand(batch_size, length, dtype=torch.float64)]


def log_weights(batch_size: int, length: int, size: int) -> list[Tensor]:
    """Of an automaton, with its vectors."""
    weights = [torch.randn(batch_size, length, Q, S, *to, dtype=torch.float64) for to in ((Q, S), (Q, S), (Q,))]
    vectors = torch.randn(batch_size, length + 1, size, dtype=torch.float64)
    return [*weights, vectors[:, 1:], vectors[:, 0]]


def updates(batch_size: int, length: int, size: int) -> list[Tensor]:
    """Of the delta rule, with keys of length 1 and two updates per step."""
    queries, keys = (torch.randn(batch_size, length, *more, 3, dtype=torch.float64) for more in ((), (2,)))
    values = torch.randn(batch_size, length, 2, size, dtype=torch.float64)
    strengths, decays = 2 * torch.rand(batch_size, length, 2).double(), -torch.rand(batch_size, length).double()
    return [queries, torch.nn.functional.normalize(keys, dim=-1), values, strengths, decays]


def pointer_actions(batch_size: int, length: int, size: int) -> list[Tensor]:
    """Pushes and pops, values, and how sharp addresses are."""
    push, pop, _ = actions(batch_size, length, size)[0].unbind(2)
    values = torch.randn(batch_size, length, size, dtype=torch.float64)
    return [push, pop, values, torch.randn(batch_size, dtype=torch.float64)]


def _memory(inputs: Sequence[Tensor]) -> DeltaRuleState:
    queries, _, values = inputs[:3]
    sizes = {"batch_size": len(values), "key_size": queries.size(2), "value_size": values.size(3)}
    return DeltaRuleState.initial(**sizes, dtype=values.dtype, device=values.device)


def _of_values(state: Any, inputs: Sequence[Tensor], **options: Any) -> Any:
    values = inputs[2] if len(inputs) > 2 else inputs[1]
    sizes = {"batch_size": values.size(0), "size": values.size(2)}
    return state.initial(**sizes, dtype=values.dtype, device=values.device, **options)


def automaton(inputs: Sequence[Tensor], **options: Any) -> NondeterministicStackState:
    """The state of the nondeterministic stack before the first step, for inputs."""
    batch_size, _, num_states, num_symbols = inputs[0].shape[:4]
    sizes: Any = {"batch_size": batch_size, "num_states": num_states, "num_symbols": num_symbols}
    return NondeterministicStackState.initial(inputs[4], **sizes, **options)


def _triton(*inputs: Tensor) -> Tensor:
    readings, _ = nondeterministic_gpu.nondeterministic_stack_triton(*inputs, return_weights=False)
    return readings


def _windowed_triton(*inputs: Tensor, window: int) -> Tensor:
    readings, _ = WITH_LIMITED_MEMORY["triton"].compute(*inputs, return_weights=False, window=window)
    return readings


def _superposition(**options: Any) -> Stack:
    return Stack(
        names=("actions", "values"),
        compute=partial(superposition_stack, **options),
        draw=actions,
        begin=lambda inputs: _of_values(SuperpositionStackState, inputs, **options),
        ways=("reference", "pytorch", *NATIVE, *STEPS),
        triton=partial(superposition_stack_triton, **{"depth_limit": None, **options}),
        golden=() if options else ("superposition_*.npz",),
    )


def _items(op: Callable[..., Tensor], state: Any, *, with_amounts: bool, golden: Sequence[str]) -> Stack:
    return Stack(
        names=("pop", "push", "values", *(["read_strength"] if with_amounts else [])),
        compute=(lambda *inputs, **options: op(*inputs[:3], read_strength=inputs[3], **options))
        if with_amounts
        else op,
        draw=strengths_of_reading if with_amounts else strengths,
        begin=lambda inputs: _of_values(state, inputs),
        ways=("reference", "pytorch", *([] if with_amounts else STEPS[:1])),
        golden=() if with_amounts else tuple(golden),
    )


def _nondeterministic(**options: Any) -> Stack:
    return Stack(
        names=("push", "replace", "pop", "values", "bottom"),
        compute=partial(nondeterministic_stack, **options),
        draw=log_weights,
        begin=lambda inputs: automaton(inputs, **options),
        ways=("reference", "pytorch", *NATIVE, *STEPS),
        triton=partial(_windowed_triton, **options) if options else _triton,
        golden=() if options else ("nondeterministic_*.npz",),
        tolerance=1e-9,
    )


def _pointer(**options: Any) -> Stack:
    return Stack(
        names=("push", "pop", "values", "kappa"),
        compute=partial(pointer_stack, cells=CELLS, **options),
        draw=pointer_actions,
        begin=lambda inputs: PointerStackState.initial(inputs[3], size=inputs[2].size(2), cells=CELLS, **options),
        ways=("reference", "pytorch", "steps-pytorch"),
    )


_STACK_FILES, _QUEUE_FILES = ("stratification_*.npz", "neural_stacks/stack_*.npz"), ("neural_stacks/queue_*.npz",)
STACKS = {
    "superposition": _superposition(),
    "superposition-limited": _superposition(depth_limit=2),
    "stratification": _items(stratification_stack, StratificationStackState, with_amounts=False, golden=_STACK_FILES),
    "stratification-amounts": _items(stratification_stack, StratificationStackState, with_amounts=True, golden=()),
    "queue": _items(queue, QueueState, with_amounts=False, golden=_QUEUE_FILES),
    "queue-amounts": _items(queue, QueueState, with_amounts=True, golden=()),
    "delta": Stack(
        names=("queries", "keys", "values", "strengths", "log_decays"),
        compute=delta_rule,
        draw=updates,
        begin=_memory,
        ways=("reference", "pytorch", "steps-pytorch"),
    ),
    "pointer": _pointer(),
    "pointer-clamped": _pointer(clamped=True),
    "nondeterministic": _nondeterministic(),
    "nondeterministic-window": _nondeterministic(window=3),
}


def fast_backends() -> Iterator[str]:
    """Each fast backend that this machine has, chosen until the next."""
    for name in FAST:
        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(pytest.skip.Exception):
            yield use_backend(name, patch)


class Way:
    """A way to compute the readings of a stack, chosen for the rest of a test."""

    def __init__(self, stack: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.id, self.name, self.stack = f"{stack}-{name}", name, STACKS[stack]
        self.is_hand_written = stack.startswith(("superposition", "nondet")) and name.startswith(("pytorch", "native"))
        self.on_gpus = name.endswith("triton")
        self.steps = name.startswith("steps-")
        if self.on_gpus:
            _use_small_parts(monkeypatch)
        if name == "steps-pytorch":
            _leave_kernels(monkeypatch)
        elif self.steps:
            use_backend(f"native-{name.removeprefix('steps-')}", monkeypatch)
        elif not self.on_gpus:
            self.backend = use_backend(name, monkeypatch)

    def read(self, inputs: Sequence[Tensor]) -> Tensor:
        """The readings, on the CPU."""
        if self.steps:
            if not inputs[0].size(1):
                return self.stack.compute(*inputs)
            return self.stack.step_through(inputs, self.begin(inputs))[0]
        if self.on_gpus:
            assert self.stack.triton is not None
            return self.stack.triton(*(x.to(DEVICE) for x in inputs)).cpu()
        return self.stack.compute(*inputs, backend=self.backend)

    def begin(self, inputs: Sequence[Tensor]) -> Any:
        """The state before the first step."""
        return self.stack.begin(inputs)


def _use_small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have few steps and rows in each program of Triton, whose interpreter is slow."""
    from fairseq_stack.ops._triton.superposition import launch as superposition_launch

    for name, size in {"LANES": 4, "PART": 4, "STEPS": 3}.items():
        monkeypatch.setattr(superposition_launch, name, size)
    monkeypatch.setattr(nondeterministic_gpu, "_tile_size", lambda length, top: 4)


def _leave_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have steps computed in PyTorch, in several panels also if there are few."""
    for module in (superposition_state, nondeterministic_state):
        monkeypatch.setattr(module, "library", lambda: None)
    monkeypatch.setattr(_panels, "FEWEST", 3)


ON_GPUS = torch.cuda.is_available()
"""Triton's interpreter takes seconds per case: of its kernels, some properties are asked on GPUs only."""


def ways(
    *stacks: str, reference: bool = True, ops: bool = True, steps: bool = True, triton: bool = True
) -> pytest.MarkDecorator:
    """Runs a test with each ``way`` to compute each stack, or each of ``stacks``."""
    chosen = list(_ways(stacks or STACKS, reference=reference, ops=ops, steps=steps, triton=triton))
    return pytest.mark.parametrize("way", chosen, indirect=True, ids="-".join)


def _ways(stacks: Iterable[str], *, reference: bool, ops: bool, steps: bool, triton: bool) -> Iterable[Any]:
    for name in stacks:
        stack = STACKS[name]
        gpu = ("triton",) if triton and stack.triton is not None else ()
        for way in (*stack.ways, *gpu):
            if reference if way == "reference" else steps if way.startswith("steps-") else ops:
                yield pytest.param((name, way), marks=[pytest.mark.triton] if way in gpu else [])
