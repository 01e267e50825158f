"""The sizes of what the kernels compute, and their memory. This module does not need Triton."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Inner(NamedTuple):
    """What the forward pass leaves; an argument of the kernels."""

    weights: Tensor  # W, (B, n, C, width)
    transitions: Tensor  # D_t, (B, n, C, 2 C + Q), up to a factor for each step
    g: Tensor  # (B, cells, C S T T Q), see ``forward.py``
    popped: Tensor  # (B, cells, S T Q T Q)
    exponents: Tensor  # (B, cells)
    alpha: Tensor  # (B, tiles T, C)
    alpha_exponents: Tensor  # (B, tiles)
    inexact: Tensor  # (B,), whether float64 is not precise enough


class Cells(NamedTuple):
    """The sizes that are numbers for the kernels, not constants: as in ``Sizes``."""

    length: int
    bands: int
    tiles: int
    cells: int
    width: int
    limit: int
    is_limited: int


class Sizes(NamedTuple):
    """Sizes of a batch; tiles have T rows and columns. The window D is None if the memory is unlimited."""

    batch: int
    length: int
    num_states: int
    num_symbols: int
    tile: int
    window: int | None

    @property
    def top(self) -> int:
        """C."""
        return self.num_states * self.num_symbols

    @property
    def tiles(self) -> int:
        """How many tiles the coordinates 0..n + 1 take."""
        return (self.length + 1) // self.tile + 1

    @property
    def bands(self) -> int:
        """In how many diagonals of cells there are inner weights."""
        if self.window is None:
            return self.tiles
        return min((self.window + self.tile - 1) // self.tile + 1, self.tiles)

    @property
    def cells(self) -> int:
        return self.bands * self.tiles - self.bands * (self.bands - 1) // 2

    @property
    def width(self) -> int:
        """How many weights a reading has: of all vectors, or of those in the cells of its column of cells."""
        return self.length + 1 if self.window is None else self.bands * self.tile

    @property
    def limit(self) -> int:
        """How far apart the row and the column of an inner weight may be."""
        return self.length + 1 if self.window is None else self.window

    @property
    def numbers(self) -> Cells:
        is_limited = int(self.window is not None)
        return Cells(self.length, self.bands, self.tiles, self.cells, self.width, self.limit, is_limited)

    @property
    def constants(self) -> dict[str, int]:
        return {"Q": self.num_states, "S": self.num_symbols, "T": self.tile, "TQ": self.columns}

    def empty(self, like: Tensor) -> Inner:
        """Memory, on the device of a tensor in float64."""
        block = self.top * self.tile**2
        return Inner(
            like.new_empty(self.batch, self.length, self.top, self.width),
            like.new_empty(self.batch, self.length, self.top, 2 * self.top + self.num_states),
            like.new_empty(self.batch, self.cells, self.top * block),
            like.new_empty(self.batch, self.cells, self.num_states * block),
            like.new_empty(self.batch, self.cells, dtype=torch.int32),
            like.new_empty(self.batch, self.tiles * self.tile, self.top),
            like.new_empty(self.batch, self.tiles, dtype=torch.int32),
            like.new_empty(self.batch, dtype=torch.bool),
        )

    @property
    def rows(self) -> int:
        """The rows (x, i) of a cell, padded."""
        return max(16, power_of_two(self.top * self.tile))

    @property
    def warps(self) -> int:
        """How many warps a program has that holds all rows of a cell."""
        return 4 if self.rows <= 128 else 8

    @property
    def stages(self) -> int:
        """How many factors of a sum of products are in shared memory at a time."""
        return 3 if self.columns < 128 else 1

    @property
    def columns(self) -> int:
        """The columns (t, r) of a cell, padded."""
        return max(16, power_of_two(self.tile * self.num_states))

    @property
    def padded(self) -> dict[str, int]:
        """Q and S."""
        return {"QP": power_of_two(self.num_states), "SP": power_of_two(self.num_symbols)}

    @property
    def factors(self) -> dict[str, int]:
        """C and Q as sides of the factors of matrix products."""
        return {"CP": max(16, self.padded_top), "QP": max(16, self.padded["QP"])}

    @property
    def padded_top(self) -> int:
        return power_of_two(self.top)


def power_of_two(x: int) -> int:
    """The lowest power of two that is not less."""
    return 1 << (x - 1).bit_length()
