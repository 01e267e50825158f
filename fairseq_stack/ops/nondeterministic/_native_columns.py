"""The columns of an incremental state for the compiled kernels, on the CPU and without gradients."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from .._native import required_library
from .._undefined import finite
from ._columns import DEAD
from ._tracked_columns import TrackedColumns

_DEAD = -(2**28)  # DEAD of the kernels


@dataclass(frozen=True, eq=False)
class NativeColumns:
    """What t steps leave: for each step the columns of all beams it was taken for, which are never changed or copied.

    A step adds a tensor of columns, and takes O(Q^3 S^2 t^2) time for each beam; ``reorder`` moves t integers.
    Columns that no beam descends from any more stay in memory as long as the step does.

    Attributes:
        num_states: Q.
        num_symbols: S.
        value_size: m.
        memory: for each step k = 0..t the columns of its beams, (beams, bytes) of uint8, as
            ``_native/src/nondeterministic_step.h`` lays them out.
        ancestors: (B, t + 1) of int32, the place of each beam's column k in ``memory[k]``.
        instruction_set: the one that they are laid out for.
    """

    num_states: int
    num_symbols: int
    value_size: int
    memory: tuple[Tensor, ...]
    ancestors: Tensor
    instruction_set: str

    @classmethod
    def initial(cls, bottom: Tensor, num_states: int, num_symbols: int) -> NativeColumns:
        """Before the first step, with v_0 (B, m)."""
        ancestors = torch.empty(len(bottom), 0, dtype=torch.int32)
        empty = cls(num_states, num_symbols, bottom.shape[1], (), ancestors, required_library().instruction_set)
        _, columns = empty._append(None, bottom)
        return columns

    @property
    def batch_size(self) -> int:
        """B."""
        return len(self.ancestors)

    @property
    def steps(self) -> int:
        """t."""
        return len(self.memory) - 1

    @property
    def requires_grad(self) -> bool:
        return False

    def advance(self, logits: Tensor, value: Tensor) -> tuple[Tensor, NativeColumns]:
        """(a)-(d) of ``docs/algorithm.md`` for one step.

        Args:
            logits: log weights, (B, C, 2 C + Q).
            value: v_t, (B, m).

        Returns:
            The reading (B, C, m), and the next columns.
        """
        return self._append(logits.double().contiguous(), value)

    def reorder(self, index: Tensor) -> NativeColumns:
        """The columns of these batch rows, (B',)."""
        return self._with(self.memory, self.ancestors[index])

    def tracked(self) -> TrackedColumns:
        """The same as tensors for autograd."""
        columns = TrackedColumns.initial(self._column(0).value, self.num_states, self.num_symbols)
        for step in range(1, self.steps + 1):
            columns = columns.append(*self._column(step))
        return columns

    def _append(self, logits: Tensor | None, value: Tensor) -> tuple[Tensor, NativeColumns]:
        """Column t with v_t, and the reading, from log weights in float64 (None for t = 0)."""
        batch_size, size, step = len(value), self.num_states * self.num_symbols, len(self.memory)
        library = required_library().using(self.instruction_set)
        sizes = (ctypes.c_size_t * 2)()
        library.functions.fss_nd_step_sizes(
            library.number, step, self.num_states, self.num_symbols, self.value_size, sizes
        )  # fmt: skip
        column = torch.empty(batch_size, sizes[0], dtype=torch.uint8)
        readings = torch.empty(batch_size, size, self.value_size, dtype=torch.float64)
        # A view such as x.conj().imag has memory that is yet to be negated.
        ancestors, value = self.ancestors.contiguous(), value.double().resolve_neg().contiguous()
        call = _Call(
            batch_size, step, self.num_states, self.num_symbols, self.value_size,
            ancestors=ancestors.data_ptr(),
            columns=(ctypes.c_void_p * max(step, 1))(*(earlier.data_ptr() for earlier in self.memory)),
            logits=None if logits is None else logits.data_ptr(),
            values=value.data_ptr(), column=column.data_ptr(), readings=readings.data_ptr(),
        )  # fmt: skip
        work = batch_size * self.num_states * (step * size) ** 2 // 2
        library.run("fss_nd_step", call, parts=batch_size, work=work, scratch_bytes=sizes[1])
        places = torch.arange(batch_size, dtype=torch.int32)[:, None]
        return readings, self._with((*self.memory, column), torch.cat([ancestors, places], 1))

    def _with(self, memory: tuple[Tensor, ...], ancestors: Tensor) -> NativeColumns:
        return replace(self, memory=memory, ancestors=ancestors)

    def _column(self, step: int) -> _Column:
        """Column ``step`` of each batch row."""
        lanes = required_library().using(self.instruction_set).vector_bytes // 8
        tiles, size = step // lanes + 1, self.num_states * self.num_symbols
        rows = self.memory[step][self.ancestors[:, step]]
        arrays = []
        for count in (tiles * size * size * lanes, tiles * lanes, size, 1, self.value_size):
            arrays.append(rows[:, : 8 * count])
            rows = rows[:, -(-8 * count // 64) * 64 :]
        gamma, alpha, value = (arrays[i].view(torch.float64) for i in (0, 2, 4))
        exponents, alpha_exponents = (arrays[i].view(torch.int64).double() for i in (1, 3))
        gamma = gamma.view(-1, tiles, self.num_symbols, self.num_states, size, lanes).permute(0, 1, 5, 4, 3, 2)
        return _Column(
            gamma.reshape(-1, tiles * lanes, size, size)[:, : step + 1],
            torch.where(exponents <= _DEAD, DEAD, exponents)[:, : step + 1],
            finite(alpha),
            alpha_exponents[:, 0],
            value,
            (alpha - alpha).sum(1),
        )


class _Column(NamedTuple):
    """The arguments of ``TrackedColumns.append``."""

    gamma: Tensor
    exponents: Tensor
    alpha: Tensor
    alpha_exponents: Tensor
    value: Tensor
    mark: Tensor


class _Call(ctypes.Structure):
    """struct nd_step_call."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("beams", "step", "num_states", "num_symbols", "value_size")),
        ("ancestors", ctypes.c_void_p),
        ("columns", ctypes.POINTER(ctypes.c_void_p)),
        *((name, ctypes.c_void_p) for name in ("logits", "values", "column", "readings")),
    )
