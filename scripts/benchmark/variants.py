"""The ways in which a stack can be computed on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from fairseq_stack.ops._native import availability

from .prototypes import COUNTERPARTS, Prototypes, swap_actions
from .stacks import Stack, Tensors

REFERENCE, PYTORCH, NATIVE = "reference", "pytorch", "native"


@dataclass(frozen=True)
class Variant:
    """One way to compute a stack.

    Attributes:
        name: the backend, with the instruction set of a compiled one.
        dtype: of the inputs.
        compute: gives the readings for the inputs.
        instruction_set: which one the compiled kernels use (None: as they choose).
        prototype: the name of the prototype that it is to be compared with, if there is one.
        is_prototype: whether it is one itself.
        arrange: puts inputs into the order in which it takes them, and gradients back.
    """

    name: str
    dtype: torch.dtype
    compute: Callable[[Tensors], Tensor]
    instruction_set: str | None = None
    prototype: str | None = None
    is_prototype: bool = False
    arrange: Callable[[Tensors], Tensors] = dict

    @property
    def label(self) -> str:
        """The name and the dtype."""
        return f"{self.name} {dtype_name(self.dtype)}"

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


def find_variants(
    case: Stack, dtypes: Sequence[torch.dtype], device: torch.device, prototypes: Prototypes | None = None
) -> list[Variant]:
    """All ways to compute a case on a device but the reference: the compiled ones by instruction set."""
    return [
        variant
        for dtype in dtypes
        for variant in (*_own(case, dtype, device), *(_of_prototypes(case, dtype, prototypes) if prototypes else ()))
    ]


def automatic(case: Stack, dtype: torch.dtype) -> Variant:
    """The way in which models compute a case."""
    return Variant("auto", dtype, partial(case.readings, backend="auto"))


def backends_of(case: Stack, dtype: torch.dtype, device: torch.device) -> list[Variant]:
    """The backends that can compute a case on a device, as they choose the instruction set; without the reference."""
    usable = [PYTORCH, NATIVE] if device.type == "cpu" and availability().library is not None else [PYTORCH]
    return [Variant(name, dtype, partial(case.readings, backend=name)) for name in usable if name in case.backends]


def reference(case: Stack) -> Variant:
    """The equations of the papers, in float64."""
    return Variant(REFERENCE, torch.float64, partial(case.readings, backend=REFERENCE))


def pytorch(case: Stack, dtype: torch.dtype) -> Variant:
    """The backend that there is on all devices."""
    return Variant(PYTORCH, dtype, partial(case.readings, backend=PYTORCH))


def _own(case: Stack, dtype: torch.dtype, device: torch.device) -> Iterator[Variant]:
    compiled = availability().library
    for backend in case.backends:
        variant = Variant(
            backend,
            dtype,
            partial(case.readings, backend=backend),
            prototype=COUNTERPARTS.get((case.name, backend)),
        )
        if backend == NATIVE and compiled is not None and device.type == "cpu":
            for instruction_set in compiled.instruction_sets:
                yield replace(variant, name=f"{backend} {instruction_set}", instruction_set=instruction_set)
        elif backend not in (REFERENCE, NATIVE):
            yield variant


def _of_prototypes(case: Stack, dtype: torch.dtype, prototypes: Prototypes) -> Iterator[Variant]:
    for name, compute in prototypes.of(case.name, dtype).items():
        arrange = swap_actions if case.name == "sup" else dict
        yield Variant(name, dtype, compute, is_prototype=True, arrange=arrange)
