"""What is measured: a kind of the register with its sizes, and the variants in which it can be computed."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.kinds import Kind, kinds
from fairseq_stack.modules import StackAttention, StatefulAttention
from fairseq_stack.ops import Op
from fairseq_stack.ops._native import availability

Tensors = dict[str, Tensor]
Sizes = tuple[int, ...]
REFERENCE, PYTORCH, NATIVE = "reference", "pytorch", "native"

MODEL_SIZE = 8
MOST_STEPS, MOST_COMPONENTS = 9, 20
"""The sizes of a case that is quick to compute."""


def measurable() -> dict[str, Kind]:
    """The kinds that have a stack with an op, by name."""
    return {kind.name: kind for kind in kinds() if kind.build is not None and kind.op is not None}


def first_of_each_op() -> list[str]:
    """The names of kinds that together have all stacks, without repetition."""
    names: dict[Op | None, str] = {}
    for name, kind in measurable().items():
        names.setdefault(kind.op, name)
    return [*names.values()]


def axes_of(kind: Kind) -> tuple[str, ...]:
    """A letter for each size of a case: B, n, and those of the kind, with m for the size of vectors."""
    return ("B", "n", *("m" if size.letter == "M" else size.letter for size in kind.sizes))


@dataclass(frozen=True)
class Case:
    """A stack with its sizes, B, n and those of the kind, and options of its op."""

    kind: Kind
    sizes: Sizes
    options: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def batch_size(self) -> int:
        """B."""
        return self.sizes[0]

    @property
    def length(self) -> int:
        """n."""
        return self.sizes[1]

    @property
    def op(self) -> Op:
        assert self.kind.op is not None
        return self.kind.op

    def by_axis(self) -> dict[str, int]:
        """The sizes by the letters of the axes."""
        return dict(zip(axes_of(self.kind), self.sizes, strict=True))

    def __str__(self) -> str:
        return f"{self.kind.name} ({', '.join(map(str, self.sizes))})"

    def small(self) -> Case:
        """A case of two sequences that differs only in sizes that the kernels are not specialised for."""
        sizes = self.by_axis() | {"B": 2, "n": min(self.length, MOST_STEPS)}
        if "m" in sizes:
            sizes["m"] = min(sizes["m"], MOST_COMPONENTS)
        return replace(self, sizes=tuple(sizes.values()))

    def module(self) -> StatefulAttention:
        """The sublayer, in float64, with the same parameters each time."""
        assert self.kind.build is not None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return self.kind.build(MODEL_SIZE, *self.sizes[2:]).double()

    def steps(self, module: StatefulAttention) -> tuple[Tensor, ...]:
        """Random numbers as models have them, in float64.

        Of a stack, ``W_a x_t`` and v_t, which are Gaussian, and Gaussian through a sigmoid; otherwise Gaussian inputs.
        """
        generator, steps = torch.Generator().manual_seed(0), self.sizes[:2]
        if not isinstance(module, StackAttention):
            return (torch.randn(*steps, MODEL_SIZE, generator=generator, dtype=torch.float64),)
        actions = torch.randn(*steps, module.actions.out_features, generator=generator, dtype=torch.float64)
        return actions, torch.randn(*steps, module.value_size, generator=generator, dtype=torch.float64).sigmoid()

    def inputs(self, dtype: torch.dtype, device: torch.device) -> Tensors:
        """Random arguments of the op that require gradients: the same for all devices and, rounded, for all dtypes."""
        module = self.module()
        drawn = self.steps(module)
        arguments = module.arguments(*drawn) if isinstance(module, StackAttention) else module.arguments_of(*drawn)
        named = zip(inspect.signature(self.op.compute).parameters, arguments, strict=False)
        return {name: argument.detach().to(device, dtype).requires_grad_() for name, argument in named}

    def cotangent(self, inputs: Tensors) -> Tensor:
        """A gradient of the readings for these inputs."""
        single = replace(self, sizes=(1, 1, *self.sizes[2:]))
        shape = Variant(REFERENCE).readings(single, single.inputs(torch.float64, torch.device("cpu"))).shape[2:]
        first = next(iter(inputs.values()))
        generator = torch.Generator().manual_seed(1)
        return torch.randn(*first.shape[:2], *shape, generator=generator, dtype=torch.float64).to(first)


@dataclass(frozen=True)
class Variant:
    """One way to compute a stack.

    Attributes:
        backend: its name; ``"auto"`` for that of models.
        dtype: of the inputs.
        instruction_set: which one the compiled kernels use (None: as they choose).
    """

    backend: str
    dtype: torch.dtype = torch.float64
    instruction_set: str | None = None

    @property
    def name(self) -> str:
        """The backend, with the instruction set."""
        return self.backend if self.instruction_set is None else f"{self.backend} {self.instruction_set}"

    @property
    def label(self) -> str:
        """The name and the dtype."""
        return f"{self.name} {dtype_name(self.dtype)}"

    def readings(self, case: Case, inputs: Tensors) -> Tensor:
        """The readings r_1..r_n."""
        options = {**case.kind.op_options(*case.sizes[2:]), **case.options}
        readings: Tensor = case.op.compute(*inputs.values(), backend=self.backend, **options)
        return readings

    @contextmanager
    def active(self) -> Iterator[None]:
        """Have the compiled kernels use the instruction set, in forward and backward passes within."""
        compiled = availability().library
        if compiled is None or self.instruction_set is None:
            yield
            return
        before = compiled.instruction_set
        compiled.instruction_set = self.instruction_set
        try:
            yield
        finally:
            compiled.instruction_set = before


def dtype_name(dtype: torch.dtype) -> str:
    """``float32`` for torch.float32."""
    return str(dtype).removeprefix("torch.")


def judge_of(case: Case) -> Variant:
    """What a case of any size is compared with: PyTorch in float64, or the equations where it does not exist."""
    return Variant(PYTORCH if PYTORCH in case.op.backends else REFERENCE)


def find_variants(case: Case, dtypes: Sequence[torch.dtype], device: torch.device) -> list[Variant]:
    """All ways to compute a case on a device except the reference: the compiled ones by instruction set."""
    compiled = availability().library
    instruction_sets = (None,) if compiled is None else compiled.instruction_sets
    backends = [x.name for x in case.op.backends.values() if x.name != REFERENCE and x.obstacle(device) is None]
    return [
        Variant(backend, dtype, instruction_set)
        for dtype in dtypes
        for backend in backends
        for instruction_set in (instruction_sets if backend == NATIVE else (None,))
    ]


def sizes_of(kind: Kind, part: str) -> Sequence[Sizes]:
    """Which sizes of a kind are measured unless others are given: ``timed`` in passes, and ``decoded``.

    A kind that is not of this project has the sizes of its examples.
    """
    if kind.name in _SIZES:
        return _SIZES[kind.name][part]
    return [(10, 80, *example) for example in kind.examples]


def quick_sizes(kind: Kind) -> Sizes:
    """The sizes of a quick run."""
    return (2, 12, *kind.examples[0])


_SIZES: dict[str, dict[str, Sequence[Sizes]]] = {
    "nd": {
        "timed": (
            *((10, 40, 2, 3, 5), (16, 30, 3, 3, 10), (10, 80, 3, 3, 5), (10, 100, 3, 3, 5)),
            *((4, 200, 3, 3, 5), (1, 400, 3, 3, 5)),
        ),
        "decoded": ((10, 40, 2, 3, 5), (10, 80, 3, 3, 5), (10, 200, 3, 3, 5)),
    },
    "sup": {
        "timed": ((10, 60, 32), (16, 30, 511), (10, 80, 511), (10, 200, 511), (2, 400, 256)),
        "decoded": ((10, 80, 511), (10, 200, 511)),
    },
    "strat": {
        "timed": ((10, 60, 32), (10, 80, 511), (10, 200, 511)),
        "decoded": ((10, 80, 511),),
    },
}
