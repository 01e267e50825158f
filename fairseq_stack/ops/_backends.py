"""The stacks as records, and the choice among the implementations of each.

Environment variable, read when the first tensor on a GPU comes:
    FAIRSEQ_STACK_TRITON: ``0`` to do without the Triton kernels.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.torch_version import TorchVersion

from ._native import availability, library
from ._transforms import is_transformed

logger = logging.getLogger(__name__)
_ENABLED = "FAIRSEQ_STACK_TRITON"
OLDEST_TRITON = "3.5"  # the first that compiles products of float64 matrices; PyTorch 2.9 comes with it
RandomTensor = Callable[..., Tensor]
"""Makes a tensor of the given sizes whose elements are between 0 and 1."""


@dataclass(frozen=True)
class Backend:
    """One implementation of a stack.

    Attributes:
        name: its name as a ``backend`` argument.
        compute: the implementation.
        obstacle: says why it cannot run on a device, as the end of a sentence that begins with its name; None if it
            can.
    """

    name: str
    compute: Callable[..., Any]
    obstacle: Callable[[torch.device], str | None] = lambda device: None


@dataclass(frozen=True, eq=False)
class Op:
    """A stack that reads a whole sequence at once.

    Attributes:
        name: the public function's name.
        compute: the public function, which takes ``backend``.
        backends: its implementations by name. ``"auto"`` stands for the first that can run on the device; the last, the
            equations of the paper, can run on every device.
        example: arguments for a batch of ``length`` steps: maps a source of random tensors and the length to them.
    """

    name: str
    compute: Callable[..., Any]
    backends: Mapping[str, Backend]
    example: Callable[[RandomTensor, int], tuple[Any, ...]]


def by_name(*backends: Backend) -> dict[str, Backend]:
    """The implementations of a stack, the preferred ones first."""
    return {backend.name: backend for backend in backends}


def choose_backend(op: str, backend: str, backends: Mapping[str, Backend], device: torch.device) -> Callable[..., Any]:
    """Return the implementation that the ``backend`` argument of an op names.

    Args:
        op: the op's name, for the message.
        backend: ``"auto"`` or the name of one of ``backends``.
        backends: the op's implementations by name, the preferred ones first.
        device: the device of the op's arguments.

    Raises:
        ValueError: if there is no such backend, it cannot be used, or the device holds no data.
    """
    if device.type == "meta" and backend != "native":
        raise ValueError(f"{op}: expected tensors with data, got device meta")
    if backend == "auto":
        return automatic_backend(backends, device).compute
    if backend not in backends:
        names = ", ".join(repr(name) for name in ("auto", *backends))
        raise ValueError(f"{op}: backend must be one of {names}, got {backend!r}")
    obstacle = backends[backend].obstacle(device)
    if obstacle is not None:
        raise ValueError(f"{op}: backend {backend!r} {obstacle}")
    return backends[backend].compute


def automatic_backend(backends: Mapping[str, Backend], device: torch.device) -> Backend:
    """The backend that ``"auto"`` stands for: the first that can run on the device."""
    return next(backend for backend in backends.values() if backend.obstacle(device) is None)


def native_obstacle(device: torch.device) -> str | None:
    """Why the compiled kernels cannot run on a device."""
    if device.type != "cpu":
        return f"needs tensors on the CPU, got {device}"
    return None if _native_is_available() else f"cannot be used: {availability().reason}"


def loop_is_compiled(*arguments: Tensor) -> bool:
    """Whether ``stack_lstm`` and ``neural_stack`` take these tensors, and compute with them on the compiled kernels.

    They take tensors on the CPU, all in float32 or all in float64. Under autocast, ``torch.func`` and forward-mode
    derivatives, a network needs the steps one by one.
    """
    device, dtype = arguments[0].device, arguments[0].dtype
    fits = dtype in (torch.float32, torch.float64) and all(x.dtype == dtype for x in arguments)
    plain = not torch.is_autocast_enabled(device.type) and not is_transformed(*arguments)
    return fits and plain and native_obstacle(device) is None


def triton_obstacle(device: torch.device) -> str | None:
    """Why the Triton kernels cannot run on a device."""
    if device.type != "cuda":
        return f"needs tensors on a GPU, got {device}"
    return _obstacle_of_triton(device)


def _obstacle_of_triton(device: torch.device) -> str | None:
    return _find_obstacle_of_triton(device)


@functools.cache
def _find_obstacle_of_triton(device: torch.device) -> str | None:
    problem = _problem_of_triton(device)
    if problem is None:
        return None
    logger.warning("stacks on %s run in PyTorch, several times slower: %s", device, problem)
    return f"cannot be used: {problem}"


def _problem_of_triton(device: torch.device) -> str | None:
    if os.environ.get(_ENABLED) == "0":
        return f"{_ENABLED} is 0"
    if importlib.util.find_spec("triton") is None:
        return "the package triton is not installed"
    version = importlib.import_module("triton").__version__
    if TorchVersion(version) < OLDEST_TRITON:
        return f"it needs triton {OLDEST_TRITON} or later, and {version} is installed"
    try:
        importlib.import_module("fairseq_stack.ops._triton.trial").run_a_kernel(device)
    except Exception as error:  # whatever the compilers say
        return f"triton does not work ({str(error).strip().splitlines()[-1] if str(error).strip() else repr(error)})"
    return None


def _native_is_available() -> bool:
    return library() is not None


# As torch.compiler.assume_constant_result does, without its import of torch._dynamo, which takes two seconds.
_native_is_available._dynamo_marked_constant = True  # type: ignore[attr-defined]
_obstacle_of_triton._dynamo_marked_constant = True  # type: ignore[attr-defined]
