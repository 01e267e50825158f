"""The sizes of what the kernels compute. This module does not need Triton."""

from __future__ import annotations

from typing import NamedTuple


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
    def constants(self) -> dict[str, int]:
        return {"Q": self.num_states, "S": self.num_symbols, "T": self.tile}

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
