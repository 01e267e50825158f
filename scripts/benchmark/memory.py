"""Peak memory of a forward and a backward pass beyond the memory in use before, which includes the inputs.

On CPUs that is the growth of the resident memory of a process that has computed nothing large yet: each measurement has
a process of its own, forked from one that has nothing but the stacks loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from .cases import Case, Sizes, Variant, measurable
from .timing import Timer, passes_of

MEGABYTE = 1e6

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__, "torch._dynamo"])  # which the first call of a kernel imports, in seconds


def megabytes(case: Case, variant: Variant, threads: int, device: torch.device) -> float:
    """Peak extra memory of a forward and backward pass."""
    if device.type != "cpu":
        return _cuda_megabytes(case, variant, device)
    with ProcessPoolExecutor(1, PROCESSES) as pool:
        return pool.submit(_cpu_megabytes, case.kind.name, case.sizes, case.options, variant, threads).result()


def _cuda_megabytes(case: Case, variant: Variant, device: torch.device) -> float:
    """Peak extra memory of a forward and backward pass, as torch's allocator on the device sees it."""
    run = passes_of(case, variant, Timer(device))
    run()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    return (torch.cuda.max_memory_allocated(device) - before) / MEGABYTE


def _cpu_megabytes(kind: str, sizes: Sizes, options: dict[str, Any], variant: Variant, threads: int) -> float:
    torch.set_num_threads(threads)
    timer, case = Timer(torch.device("cpu")), Case(measurable()[kind], sizes, options)
    passes_of(case.small(), variant, timer)()  # loads code and starts threads
    return growth(passes_of(case, variant, timer))


def growth(run: Callable[[], object]) -> float:
    """By how many megabytes the resident memory of this process grows, at its peak, while something runs."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # gives back what is free, so that what is allocated next is seen
    before = _reset_peak()
    run()
    return (_peak_bytes() - before) / MEGABYTE


def _reset_peak() -> int:
    """Take the resident memory as the peak so far, where the system can, and return the peak in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()


def _peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024
