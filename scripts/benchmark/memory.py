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
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from .cases import Case, Variant, dtype_name, measurable
from .timing import Timer, passes_of

MEGABYTE = 1e6


class MemoryMeter:
    """Measures memory; a context manager, which ends the helper process.

    Args:
        device: where.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
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
        if self._device.type != "cpu":
            return _cuda_megabytes(case, variant, self._device)
        job = {
            "kind": case.kind.name,
            "sizes": case.sizes,
            "options": case.options,
            "backend": variant.backend,
            "dtype": dtype_name(variant.dtype),
            "instruction_set": variant.instruction_set,
            "threads": threads,
        }
        answer = self._ask(json.dumps(job))
        if not answer:
            raise RuntimeError(f"the process that measures the memory of {variant.label} for {case} failed")
        return float(json.loads(answer)["megabytes"])

    def _ask(self, job: str) -> str:
        if self._process is None:
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # it imports what this process does
            command = [sys.executable, "-m", __name__]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(job, file=self._process.stdin, flush=True)
        return self._process.stdout.readline()


def _cuda_megabytes(case: Case, variant: Variant, device: torch.device) -> float:
    """Peak extra memory of a forward and backward pass, as torch's allocator on the device sees it."""
    run = passes_of(case, variant, Timer(device))
    run()
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    return (torch.cuda.max_memory_allocated(device) - before) / MEGABYTE


def serve() -> None:
    """Answer the jobs on standard input until it ends, each in a process of its own."""
    for line in sys.stdin:
        job = json.loads(line)
        if job["backend"] in ("native", "auto"):
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
    case = Case(measurable()[job["kind"]], tuple(job["sizes"]), job["options"])
    variant = Variant(job["backend"], getattr(torch, job["dtype"]), job["instruction_set"])
    passes_of(case.small(), variant, Timer(device))()  # loads code and starts threads
    return growth(passes_of(case, variant, Timer(device)))


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


if __name__ == "__main__":
    serve()
