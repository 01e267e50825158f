"""The compiled kernels: a shared library in C that is built when the package is installed, called through ctypes.

The library needs neither torch nor Python to be compiled, runs without the GIL, and chooses the instruction set at
run time. Where it is missing, the stacks use their PyTorch implementations.

A forked child does not have the OpenMP threads of its parent. An operation that uses them never returns, and this
includes PyTorch's own operations. The child therefore computes with one thread; see :func:`_leave_threads_to_parent`.
For the locks of MKL, see :mod:`.forks`.

Environment variables, read when the library is first asked for:
    FAIRSEQ_STACK_NATIVE: ``0`` to do without the library.
    FAIRSEQ_STACK_INSTRUCTION_SET: the instruction set to use instead of the fastest that the machine has.
    FAIRSEQ_STACK_KERNELS: a file to load instead of the library of the package, such as one with sanitizers.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import NamedTuple

import torch

from . import forks as forks  # waits before each fork
from .buffers import Buffers, buffers
from .structures import new_call

__all__ = ["Availability", "Buffers", "Library", "availability", "buffers", "crew_size", "library", "required_library"]

logger = logging.getLogger(__name__)

LIBRARY = Path(__file__).with_name("_kernels.so")
INTERFACE = 24  # fss_interface() of the library that this module can call
WORTH_THREADS = 100_000  # multiply-adds: one thread finishes fewer before a second has started
WORTH_CREW = 2_000_000  # multiply-adds of a sequence that is shared: its threads also wait for each other
SMALL = 65_536  # bytes: the C library allocates fewer without a call of the system

_ENABLED = "FAIRSEQ_STACK_NATIVE"
_INSTRUCTION_SET = "FAIRSEQ_STACK_INSTRUCTION_SET"
_KERNELS = "FAIRSEQ_STACK_KERNELS"


class Library:
    """The loaded library, and the instruction set that it uses.

    Attributes:
        functions: the library, for ctypes.
        path: its file.
        instruction_sets: the names of the instruction sets that this machine has, the fastest first.
        instruction_set: the name of the instruction set that is used.
        shares_threads: whether it runs in PyTorch's threads; otherwise it starts its own.
    """

    def __init__(self, functions: ctypes.CDLL, path: Path, instruction_set: str | None = None) -> None:
        functions.fss_instruction_set.restype = ctypes.c_char_p
        self.functions = functions
        self.path = path
        self._numbers = _supported_instruction_sets(functions)
        self._others: dict[str, Library] = {}
        self.instruction_sets = tuple(self._numbers)
        self.instruction_set = instruction_set or self.instruction_sets[0]
        if self.instruction_set not in self._numbers:
            has = ", ".join(self.instruction_sets)
            raise ValueError(f"{_INSTRUCTION_SET}: expected one that this machine has ({has}), got {instruction_set!r}")
        self.use_team(torch_team())

    @property
    def number(self) -> int:
        """The library's number of the instruction set."""
        return self._numbers[self.instruction_set]

    @property
    def vector_bytes(self) -> int:
        """The size of a vector of the instruction set."""
        return int(self.functions.fss_vector_bytes(self.number))

    def using(self, instruction_set: str) -> Library:
        """The same library with another of its ``instruction_sets``."""
        if instruction_set not in self._others:
            self._others[instruction_set] = other = copy.copy(self)
            other.instruction_set = instruction_set
        return self._others[instruction_set]

    def use_team(self, team: int | None) -> None:
        """Have calls computed by the threads of :func:`torch_team`, or by threads that are started for each (None)."""
        self.functions.fss_use_team(ctypes.c_void_p(team))
        self.shares_threads = team is not None

    def sizes(self, function: str, call: ctypes.Structure) -> tuple[int, ...]:
        """What ``fss_..._sizes`` says of a call, in bytes: at most four numbers."""
        sizes = (ctypes.c_size_t * 4)()
        getattr(self.functions, function)(ctypes.byref(call), self.number, sizes)
        return tuple(sizes)

    def run(
        self, function: str, call: ctypes.Structure, *, parts: int, work: int, scratch_bytes: int, crew: int = 1
    ) -> None:
        """Run a function of the library with as many threads as PyTorch uses, or with one for little work.

        Args:
            function: its name.
            call: what it takes.
            parts: the number of independent parts.
            work: the approximate number of multiply-adds of all parts.
            scratch_bytes: the scratch memory of one thread, or of the crew; a multiple of 64.
            crew: the number of threads that share each part, see :func:`crew_size`; with 1, one thread computes a part.
        """
        if crew > 1:
            threads = workers = crew
            size = scratch_bytes
        else:
            threads = torch.get_num_threads() if parts > 1 and work >= WORTH_THREADS else 1
            workers = min(threads, parts)
            size = workers * scratch_bytes
        scratch = torch.empty(size, dtype=torch.uint8, device="cpu") if size < SMALL else buffers.take(size)
        resources = new_call("resources", self.number, threads, workers, int(crew > 1), scratch_bytes=scratch_bytes)
        resources.hold(scratch=scratch)
        getattr(self.functions, function)(ctypes.byref(call), ctypes.byref(resources))


def crew_size(parts: int, work: int, most: int) -> int:
    """How many threads are to share each part, of those that PyTorch uses: 1 if there are parts enough for all threads.

    Args:
        parts: the number of parts.
        work: the approximate number of multiply-adds of one part.
        most: so many threads can work at one part at the same time.
    """
    threads = torch.get_num_threads()
    return min(threads, most) if parts < threads and work >= WORTH_CREW else 1


def torch_team() -> int | None:
    """The address of what runs a function in PyTorch's own threads, or None where these are not threads of OpenMP.

    These threads keep the processor busy for some milliseconds after each operation of PyTorch, and further threads
    would have to wait for them. A forked child has no such threads.
    """
    if _is_forked:
        return None
    try:
        parallel = ctypes.CDLL(None).GOMP_parallel
    except (AttributeError, OSError, TypeError):
        return None
    return ctypes.cast(parallel, ctypes.c_void_p).value


_is_forked = False


def _leave_threads_to_parent() -> None:
    """In a forked child: make PyTorch use one thread, and the kernels only threads that they start themselves.

    PyTorch does the same in the workers of a DataLoader. If the child calls ``torch.set_num_threads`` again, the
    kernels still work, but an operation of PyTorch may hang.
    """
    global _is_forked
    _is_forked = True
    torch.set_num_threads(1)
    if availability.cache_info().currsize and (loaded := library()) is not None:
        loaded.use_team(None)


os.register_at_fork(after_in_child=_leave_threads_to_parent)


class Availability(NamedTuple):
    """The library and its name, or None and the reason."""

    library: Library | None
    reason: str


def library() -> Library | None:
    """The library, or None where it cannot be used, which is logged once."""
    return availability().library


def required_library() -> Library:
    """The library.

    Raises:
        RuntimeError: if it cannot be used.
    """
    loaded = availability()
    if loaded.library is None:
        raise RuntimeError(f"the compiled kernels are needed: {loaded.reason}")
    return loaded.library


@functools.cache
def availability() -> Availability:
    """Load the library if it is there, fits this version, and is wanted.

    Raises:
        ValueError: if the environment names an instruction set that this machine does not have.
    """
    loaded = _load()
    if loaded.library is None:
        logger.info("stacks run in PyTorch: %s", loaded.reason)
    return loaded


def _load() -> Availability:
    if os.environ.get(_ENABLED, "1") == "0":
        return Availability(None, f"the compiled kernels are switched off ({_ENABLED}=0)")
    path = Path(os.environ.get(_KERNELS, LIBRARY))
    if path == LIBRARY and not path.exists():
        return Availability(None, "the compiled kernels are missing; install the package again with a C compiler")
    try:
        functions = ctypes.CDLL(str(path))
        interface = functions.fss_interface()
    except (OSError, AttributeError) as error:
        return Availability(None, f"{path} cannot be used ({error}); install the package again")
    if interface != INTERFACE:
        return Availability(None, f"{path} is of another version of the package; install it again")
    loaded = Library(functions, path, os.environ.get(_INSTRUCTION_SET))
    return Availability(loaded, f"compiled kernels, {loaded.instruction_set}")


def _supported_instruction_sets(functions: ctypes.CDLL) -> dict[str, int]:
    names: dict[str, int] = {}
    number = 0
    while (name := functions.fss_instruction_set(number)) is not None:
        if functions.fss_is_supported(number):
            names[name.decode()] = number
        number += 1
    return names
