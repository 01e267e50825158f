"""Peak memory of a forward and a backward pass beyond the memory in use before, which includes the inputs.

On CPUs that is the growth of the resident memory of a process that has computed nothing large yet. A helper process
that has nothing but the stacks loaded is forked for each measurement: this module, run with ``python -m``, reads one
JSON object a line and writes one.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from .stacks import STACKS, Case
from .timing import Timer, forward_and_backward
from .variants import NATIVE, Variant, dtype_name, find_variants

MEGABYTE = 1e6


class MemoryMeter:
    """Measures memory on CPUs; a context manager, which ends the helper process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> MemoryMeter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def megabytes(self, case: Case, variant: Variant, threads: int) -> float:
        """Peak extra memory of a forward and backward pass."""
        job = {
            "stack": case.stack.name,
            "sizes": case.sizes,
            "name": variant.name,
            "dtype": dtype_name(variant.dtype),
            "threads": threads,
        }
        answer = self._ask(json.dumps(job))
        if not answer:
            raise RuntimeError(f"the process that measures the memory of {variant.label} for {case} failed")
        return float(json.loads(answer)["megabytes"])

    def _ask(self, job: str) -> str:
        if self._process is None:
            command = [sys.executable, "-m", __name__]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # it imports what this process does
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(job, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()


def cuda_megabytes(case: Case, variant: Variant, device: torch.device) -> float:
    """Peak extra memory of a forward and backward pass, as torch's allocator on the device sees it."""
    run = forward_and_backward(case, variant, Timer(device))
    run()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    return (torch.cuda.max_memory_allocated(device) - before) / MEGABYTE


def serve() -> None:
    """Answer the jobs on standard input until it ends, each in a process of its own."""
    for line in sys.stdin:
        job = json.loads(line)
        if job["name"].startswith(NATIVE):
            importlib.import_module("torch._dynamo")  # which the first call of a kernel does, and which takes seconds
        child = os.fork()
        if child == 0:
            print(json.dumps({"megabytes": _measure(job)}), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status != 0:
            sys.exit(1)


def _measure(job: dict[str, Any]) -> float:
    torch.set_num_threads(job["threads"])
    device = torch.device("cpu")
    case = Case(STACKS[job["stack"]], tuple(job["sizes"]))
    dtype = getattr(torch, job["dtype"])
    (variant,) = (found for found in find_variants(case, [dtype], device) if found.name == job["name"])
    forward_and_backward(case.small(), variant, Timer(device))()  # loads code and starts threads
    run = forward_and_backward(case, variant, Timer(device))
    return_free_memory()
    before = reset_peak()
    run()
    return (peak_bytes() - before) / MEGABYTE


def return_free_memory() -> None:
    """Have the C library give back what is free, so that what is allocated next is seen."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


def reset_peak() -> int:
    """Take the resident memory as the peak so far, where the system can, and return the peak in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    (line,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    serve()
