"""Memory that is reused: touching the fresh pages of a large array takes as much time as the arithmetic."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from collections import defaultdict

import torch
from torch import Tensor

_KEPT = 4  # free buffers of one size, which is a power of 2: lengths vary, and untouched pages take no memory


class Buffers:
    """A pool of buffers, handed out as tensors, which return when the last tensor that uses their memory is gone."""

    def __init__(self) -> None:
        # Buffers return whenever Python collects garbage, in any thread: all operations on these lists are atomic.
        self._free: dict[int, list[mmap.mmap]] = defaultdict(list)

    def take(self, size: int) -> Tensor:
        """A tensor of ``size`` bytes, (size,) of uint8, with arbitrary content, that begins at a page.

        With ``torch.use_deterministic_algorithms(True)`` its bytes are all 255, which in floating-point numbers is
        NaN, as PyTorch does with its own uninitialised memory.
        """
        pages = max(mmap.PAGESIZE, 1 << (size - 1).bit_length()) if size else mmap.PAGESIZE
        try:
            memory = self._free[pages].pop()
        except IndexError:
            memory = mmap.mmap(-1, pages, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        holder = (ctypes.c_uint8 * pages).from_buffer(memory)
        weakref.finalize(holder, self._give_back, memory, pages).atexit = False
        buffer = torch.frombuffer(holder, dtype=torch.uint8, count=size) if size else torch.empty(0, dtype=torch.uint8)
        if torch.are_deterministic_algorithms_enabled():
            buffer.fill_(255)
        return buffer

    def release(self) -> None:
        """Return the memory of all free buffers to the system."""
        self._free.clear()

    def _give_back(self, memory: mmap.mmap, pages: int) -> None:
        free = self._free[pages]
        if len(free) < _KEPT:
            free.append(memory)


buffers = Buffers()
