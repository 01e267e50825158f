"""The machine in words."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from fairseq_stack.ops._native import availability

from .timing import Timer


def describe_machine(timer: Timer) -> dict[str, Any]:
    """What measurements depend on, by what it is."""
    described: dict[str, Any] = {
        "CPU": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": platform.platform(terse=True),
        "Python": platform.python_version(),
        "torch": torch.__version__,
        "stacks on the CPU": availability().reason,
    }
    if timer.device.type == "cuda":
        described["GPU"] = torch.cuda.get_device_name(timer.device)
    described["times"] = "processor time" if timer.now is time.process_time else "wall-clock time"
    if hasattr(os, "getloadavg"):
        described["load average at the start"] = round(os.getloadavg()[0], 1)
    return described


def _cpu() -> str:
    """The name of the processor, and which of the vector instructions that matter it has."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    flags = facts.get("flags", "").split()
    vectors = [name for flag, name in (("avx2", "AVX2"), ("avx512f", "AVX-512")) if flag in flags]
    return ", ".join([facts.get("model name", platform.machine()), *vectors])
