"""A step of the compiled kernels: its call, and how a column lies in memory."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._tracked_columns import Column, logarithms

BYTES = 8  # of a number


class Sizes(NamedTuple):
    """In bytes, for one beam: of the next column and its derivatives, and of the working memory of both passes."""

    column: int
    adjoint: int
    forward: int
    backward: int


class Layout(NamedTuple):
    """What decides how a column lies in memory.

    Attributes:
        step: its number.
        num_states: Q.
        num_symbols: S.
        value_size: m.
        window: D.
        lanes: numbers in a vector.
    """

    step: int
    num_states: int
    num_symbols: int
    value_size: int
    window: int
    lanes: int

    @property
    def first_row(self) -> int:
        """The first row that is remembered."""
        return max(self.step - self.window + 1, 0)

    @property
    def tiles(self) -> int:
        """How many vectors of rows it has for each element of a block."""
        return self.step // self.lanes - self.first_row // self.lanes + 1

    @property
    def size(self) -> int:
        """C."""
        return self.num_states * self.num_symbols

    def column(self, rows: Tensor) -> dict[str, Tensor]:
        """The arrays of columns, (B, bytes) of uint8, as ``_native/src/nondeterministic_step_columns.h`` has them."""
        vectors = self.tiles * self.lanes
        arrays = _arrays(rows.view(torch.float64), {
            "gamma": vectors * self.size**2, "exponents": vectors,
            "popped": vectors * self.num_states * self.size, "popped_exponents": vectors,
            "transitions": self.size * (2 * self.size + self.num_states),
            "alpha": self.size, "total": 1, "alpha_exponent": 1, "value": self.value_size, "marks": self.value_size,
        })  # fmt: skip
        return {name: x.view(torch.int64) if "exponent" in name else x for name, x in arrays.items()}

    def adjoint(self, rows: Tensor) -> dict[str, Tensor]:
        """The arrays of the derivatives of columns, (B, numbers), which are in the same header."""
        return _arrays(rows, {"outer": self.tiles * self.lanes * self.size**2, "alpha": self.size})


def _arrays(rows: Tensor, counts: dict[str, int]) -> dict[str, Tensor]:
    """Views of arrays of so many numbers, which lie one after the other; each begins at a multiple of 64 bytes."""
    arrays = {}
    for name, count in counts.items():
        arrays[name] = rows[:, :count]
        rows = rows[:, -(-BYTES * count // 64) * 64 // BYTES :]
    return arrays


def unpack(rows: Tensor, layout: Layout) -> Column:
    """Columns, (B, bytes) of uint8."""
    arrays = layout.column(rows)
    tiles, lanes, size = layout.tiles, layout.lanes, layout.size
    gamma = arrays["gamma"].view(-1, tiles, layout.num_symbols, layout.num_states, size, lanes)
    gamma = gamma.permute(0, 1, 5, 4, 3, 2).reshape(-1, tiles * lanes, size, size)
    exponents = arrays["exponents"].double()
    first = layout.first_row
    remembered = slice(first % lanes, layout.step - first // lanes * lanes + 1)
    return Column(
        gamma=logarithms(gamma[:, remembered], exponents[:, remembered]),
        alpha=logarithms(arrays["alpha"], arrays["alpha_exponent"][:, 0].double()),
        value=arrays["value"],
        marks=arrays["marks"],
    )
