"""The ways in which a stack can be computed on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from fairseq_stack.ops._native import availability

from .stacks import Case, Tensors

REFERENCE, PYTORCH, NATIVE = "reference", "pytorch", "native"


@dataclass(frozen=True)
class Variant:
    """One way to compute a stack.

    Attributes:
        name: the backend, with the instruction set of a compiled one.
        dtype: of the inputs.
        compute: gives the readings for the inputs.
        instruction_set: which one the compiled kernels use (None: as they choose).
    """

    name: str
    dtype: torch.dtype
    compute: Callable[[Tensors], Tensor]
    instruction_set: str | None = None

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


def find_variants(case: Case, dtypes: Sequence[torch.dtype], device: torch.device) -> list[Variant]:
    """All ways to compute a case on a device except the reference: the compiled ones by instruction set."""
    return [variant for dtype in dtypes for variant in _variants(case, dtype, device)]


def automatic(case: Case, dtype: torch.dtype) -> Variant:
    """The way in which models compute a case."""
    return Variant("auto", dtype, partial(case.readings, backend="auto"))


def backends_of(case: Case, dtype: torch.dtype, device: torch.device) -> list[Variant]:
    """The backends that can compute a case on a device, as they choose the instruction set; without the reference."""
    return [
        Variant(backend.name, dtype, partial(case.readings, backend=backend.name))
        for backend in case.stack.backends.values()
        if backend.name != REFERENCE and backend.obstacle(device) is None
    ]


def reference(case: Case) -> Variant:
    """The equations of the papers, in float64."""
    return Variant(REFERENCE, torch.float64, partial(case.readings, backend=REFERENCE))


def pytorch(case: Case, dtype: torch.dtype) -> Variant:
    """The backend that exists on all devices."""
    return Variant(PYTORCH, dtype, partial(case.readings, backend=PYTORCH))


def _variants(case: Case, dtype: torch.dtype, device: torch.device) -> Iterator[Variant]:
    compiled = availability().library
    for variant in backends_of(case, dtype, device):
        if variant.name == NATIVE and compiled is not None:
            for instruction_set in compiled.instruction_sets:
                yield replace(variant, name=f"{NATIVE} {instruction_set}", instruction_set=instruction_set)
        else:
            yield variant
