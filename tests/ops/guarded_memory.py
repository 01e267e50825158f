"""Calls of the compiled kernels in which every array lies between margins of NaN.

A kernel that reads beyond an array gets NaN, and one that writes there changes the margin: the NaN is a signalling one,
which arithmetic turns into another. What a kernel does not write although it has to is NaN in the results, since
the tests of this folder fill new memory with it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_stack.ops._native import Library
from fairseq_stack.ops._native.structures import new_call

MARGIN = 4096  # bytes, on either side
ALIGNMENT = 64
NAN = np.uint64(0x7FF00001_7F800001)  # NaN as one double, and as two floats
VECTORS = ("workspace", "scratch", "columns", "adjoints")  # arrays that hold vectors; others may begin anywhere
LISTS = ("columns", "adjoints")  # arrays of pointers, as many as a step has columns


class Guard:
    """A copy of an array between two margins."""

    def __init__(self, name: str, size: int, *, address: int | None = None, offset: int = 0) -> None:
        """
        Args:
            name: of the array, for messages.
            size: its bytes.
            address: what to copy; None for NaN.
            offset: bytes by which it is not aligned.
        """
        self.name, self.original = name, address
        self._memory = np.full((2 * MARGIN + size) // 8 + ALIGNMENT, NAN).view(np.uint8)
        begin = MARGIN + -(self._memory.ctypes.data + MARGIN) % ALIGNMENT + offset
        self._margins = self._memory[:begin], self._memory[begin + size :]
        self._content, self.address, self.size = (
            self._memory[begin : begin + size],
            self._memory.ctypes.data + begin,
            size,
        )
        self._untouched = [margin.copy() for margin in self._margins]
        if address is not None:
            ctypes.memmove(self.address, address, size)
        self._before = self._content.copy()

    def check_margins(self) -> None:
        """Assert that both margins are as they were."""
        for side, margin, untouched in zip(("before", "behind"), self._margins, self._untouched, strict=True):
            changed = int((margin != untouched).sum())
            assert not changed, f"{self.name}: {changed} bytes {side} the array were written"

    def copy_back(self) -> None:
        """Write what the kernel has changed to the array itself."""
        if self.original is not None and not np.array_equal(self._content, self._before):
            ctypes.memmove(self.original, self.address, self.size)


class GuardedCalls:
    """From here on, kernels are called with arrays between margins.

    Attributes:
        made: the functions that were called.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self._tensors: dict[int, tuple[int, int]] = {}  # bytes and size of an element of those that a call names
        address_of = torch.Tensor.data_ptr

        def data_ptr(tensor: torch.Tensor) -> int:
            address = address_of(tensor)
            self._tensors[address] = tensor.numel() * tensor.element_size(), tensor.element_size()
            return address

        def run(library: Library, function: str, call: Any, **sizes: int) -> None:
            self._run(library, function, call, **sizes)

        monkeypatch.setattr(torch.Tensor, "data_ptr", data_ptr)
        monkeypatch.setattr(Library, "run", run)

    def _run(
        self, library: Library, function: str, call: Any, *, parts: int, work: int, scratch_bytes: int, crew: int = 1
    ) -> None:
        """``Library.run`` with one thread or a crew.

        Raises:
            AssertionError: if the kernel wrote beyond an array.
        """
        guards: dict[int, Guard] = {}
        scratch = Guard("scratch", scratch_bytes)
        for name, kind in call._fields_:
            address = getattr(call, name)
            if kind is ctypes.c_void_p and address and name in LISTS:
                for i, pointer in _pointers(address, call.step - call.kept + 1):
                    (ctypes.c_void_p * (i + 1)).from_address(address)[i] = self._moved(name, pointer, guards)
            elif kind is ctypes.c_void_p and address in self._tensors:
                setattr(call, name, self._moved(name, address, guards))
        resources = new_call("resources", library.number, crew, crew, int(crew > 1), scratch.address, scratch_bytes)
        library.functions[function](ctypes.byref(call), ctypes.byref(resources))
        for guard in (*guards.values(), scratch):
            guard.check_margins()
            guard.copy_back()
        self._tensors.clear()
        self.made.append(function)

    def _moved(self, name: str, pointer: int, guards: dict[int, Guard]) -> int:
        """Where a pointer to or into a tensor leads when this lies between margins."""
        begin = max(address for address in self._tensors if address <= pointer)
        size, item = self._tensors[begin]
        assert pointer <= begin + size, f"{name}: points to no tensor"
        if begin not in guards:
            guards[begin] = Guard(name, size, address=begin, offset=0 if name in VECTORS else item)
        return guards[begin].address + pointer - begin


def _pointers(address: int, count: int) -> Iterator[tuple[int, int]]:
    for i, pointer in enumerate((ctypes.c_void_p * count).from_address(address)):
        if pointer:
            yield i, pointer
