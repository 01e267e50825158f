"""The columns of an incremental state by the compiled kernels, on CPUs: ``_native/src/nondeterministic_step*.h``."""

from __future__ import annotations

import dataclasses
from array import array
from dataclasses import dataclass

import torch
from torch import Tensor

from .._native import required_library
from .._native.structures import Call, new_call
from ._followed_columns import FollowedColumns
from ._native_step import BYTES, Layout, Sizes, unpack
from ._tracked_columns import Column, TrackedColumns

_UNLIMITED = 2**31 - 1  # a window that no sequence exceeds


@dataclass(frozen=True, eq=False)
class NativeColumns(FollowedColumns):
    """What t steps leave: for each step the columns of all beams it was taken for, which are never changed or copied.

    A step adds a tensor of columns, and takes O(Q^3 S^2 t^2) time for each beam; ``reorder`` moves t integers.
    Columns that no beam descends from any more stay in memory as long as the step does.

    Attributes:
        value_size: m.
        window: D, or a larger number than there are steps.
        memory: for each step k = kept..t the columns of its beams, (beams, bytes) of uint8, as
            ``_native/src/nondeterministic_step_columns.h`` lays them out.
        kept: the number of the first of them; the next step needs the last D.
        ancestors: (B, t + 1 - kept) of int32, the place of each beam's column k in ``memory[k - kept]``.
        instruction_set: the one that they are laid out for.
        ends: where the derivatives of each column that autograd follows end.
    """

    value_size: int
    window: int
    memory: tuple[Tensor, ...]
    kept: int
    ancestors: Tensor
    instruction_set: str

    @classmethod
    def empty(
        cls, bottom: Tensor, num_states: int, num_symbols: int, window: int | None, weighs: bool
    ) -> NativeColumns:
        return cls(
            num_states=num_states,
            num_symbols=num_symbols,
            window=min(window or _UNLIMITED, _UNLIMITED),
            value_size=bottom.shape[1],
            memory=(),
            kept=0,
            ancestors=torch.empty(len(bottom), 0, dtype=torch.int32, device=bottom.device),
            instruction_set=required_library().instruction_set,
            weighs=weighs,
        )

    @property
    def batch_size(self) -> int:
        """B."""
        return len(self.ancestors)

    @property
    def has_begun(self) -> bool:
        return len(self.memory) > 0

    @property
    def steps(self) -> int:
        """t."""
        return self.kept + len(self.memory) - 1

    def compute(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, NativeColumns]:
        sizes = self.sizes
        column = value.new_empty(self.batch_size, sizes.column, dtype=torch.uint8)
        size = self.num_states * self.num_symbols
        reading = value.new_empty(self.batch_size, size, self.value_size, dtype=torch.float64)
        inexact = value.new_zeros(self.batch_size, dtype=torch.bool)
        self._run(
            "fss_nd_step", column, sizes.forward,
            logits=None if logits is None else logits.double(), values=value.double(), readings=reading,
            inexact=inexact,
        )  # fmt: skip
        return reading, self._with(column, is_exact=not inexact.any())

    def differentiate(
        self, after: NativeColumns, derivatives: Tensor, gradient: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        size = self.num_states * self.num_symbols
        width = 2 * size + self.num_states if self.memory else 1
        logit_gradients = derivatives.new_empty(self.batch_size, size * width)
        value_gradients = derivatives.new_empty(self.batch_size, self.value_size)
        begins = [derivatives.data_ptr() + BYTES * begin for begin in (0, *self.ends)]
        constant = [0] * (len(self.memory) + 1 - len(begins))
        adjoints = array("Q", [*constant, *begins][-len(self.memory) - 1 :])  # NULL is 0
        self._run(
            "fss_nd_step_backward", after.memory[-1], self.sizes.backward, adjoints=adjoints,
            cotangents=None if gradient is None else gradient.double(),
            logit_gradients=logit_gradients, value_gradients=value_gradients,
        )  # fmt: skip
        return logit_gradients, value_gradients

    def ends_of(self, after: NativeColumns) -> tuple[int, ...]:
        before = self.ends[-1] if self.ends else 0
        return *self.ends, before + self.batch_size * self.sizes.adjoint // BYTES

    def newest_alpha(self) -> tuple[Tensor, Tensor]:
        arrays = self._layout(self.steps).column(self.memory[-1])
        return arrays["alpha"], arrays["alpha_exponent"][:, 0].double()

    def derivative_of_alpha(self, after: NativeColumns, derivatives: Tensor) -> Tensor:
        begin = self.ends[-1] if self.ends else 0
        rows = derivatives[begin:].view(self.batch_size, self.sizes.adjoint // BYTES)
        return self._layout(self.steps + 1).adjoint(rows)["alpha"]

    def select(self, index: Tensor) -> NativeColumns:
        ancestors = self.ancestors[index]
        # A column that autograd follows is the column of one row of the batch.
        constant = max(len(self.memory) - len(self.ends), 0)
        ancestors[:, constant:] = torch.arange(len(index), dtype=torch.int32, device=index.device)[:, None]
        memory = self.memory[:constant] + tuple(column[index] for column in self.memory[constant:])
        return dataclasses.replace(self, memory=memory, ancestors=ancestors)

    def as_tracked(self) -> TrackedColumns:
        columns = [self._column(k) for k in range(self.kept, self.steps + 1)]
        return TrackedColumns.of(columns, self.num_states, self.window)

    def _with(self, column: Tensor, is_exact: bool) -> NativeColumns:
        """With the next column, and without the columns that the step after it does not need."""
        surplus = max(len(self.memory) + 1 - self.window, 0)
        places = torch.arange(self.batch_size, dtype=torch.int32, device=column.device)[:, None]
        return dataclasses.replace(
            self,
            memory=(*self.memory, column)[surplus:],
            kept=self.kept + surplus,
            ancestors=torch.cat([self.ancestors, places], 1)[:, surplus:],
            is_exact=is_exact,
        )

    @property
    def sizes(self) -> Sizes:
        """What the next step takes."""
        library = required_library().using(self.instruction_set)
        return Sizes(*library.sizes("fss_nd_step_sizes", self._call()))

    def _run(
        self,
        function: str,
        column: Tensor,
        scratch_bytes: int,
        adjoints: array[int] | None = None,
        **tensors: Tensor | None,
    ) -> None:
        """Run a function of the library for the next step; tensors are for fields of the call."""
        call = self._call()
        columns = array("Q", map(Tensor.data_ptr, (*self.memory, column)))
        call.hold(ancestors=self.ancestors, columns=columns, adjoints=adjoints, **tensors)
        size = self.num_states * self.num_symbols
        work = self.batch_size * self.num_states * ((self.steps + 1) * size) ** 2 // 2
        library = required_library().using(self.instruction_set)
        library.run(function, call, parts=self.batch_size, work=work, scratch_bytes=scratch_bytes)

    def _call(self) -> Call:
        sizes = self.num_states, self.num_symbols, self.value_size, self.window, self.kept
        return new_call("nd_step_call", self.batch_size, self.steps + 1, *sizes)

    def _column(self, step: int) -> Column:
        """Column ``step`` of each batch row."""
        return unpack(self.memory[step - self.kept][self.ancestors[:, step - self.kept]], self._layout(step))

    def _layout(self, step: int) -> Layout:
        lanes = required_library().using(self.instruction_set).vector_bytes // BYTES
        return Layout(step, self.num_states, self.num_symbols, self.value_size, self.window, lanes)
