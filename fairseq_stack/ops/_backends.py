"""Choice among the implementations of one stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import torch

from ._native import availability, library

Implementation = TypeVar("Implementation", bound=Callable[..., object])


def choose_backend(
    op: str, backend: str, implementations: Mapping[str, Implementation], device: torch.device
) -> Implementation:
    """Return the implementation that the ``backend`` argument of an op names.

    Args:
        op: the op's name, for the message.
        backend: ``"auto"`` or a key of ``implementations``.
        implementations: the op's implementations by backend name.
        device: that of the op's arguments.

    Raises:
        ValueError: if there is no such backend, the compiled kernels are asked for and cannot be used, or the device
            holds no data.
    """
    if device.type == "meta" and backend != "native":
        raise ValueError(f"{op}: expected tensors with data, got device meta")
    if backend == "auto":
        return implementations[automatic_backend(implementations, device)]
    if backend not in implementations:
        known = ", ".join(repr(key) for key in ("auto", *implementations))
        raise ValueError(f"{op}: backend must be one of {known}, got {backend!r}")
    if backend == "native" and device.type != "cpu":
        raise ValueError(f"{op}: backend 'native' needs tensors on the CPU, got {device}")
    if backend == "native" and not _native_is_available():
        raise ValueError(f"{op}: backend 'native' cannot be used: {availability().reason}")
    return implementations[backend]


def automatic_backend(implementations: Mapping[str, object], device: torch.device) -> str:
    """What ``"auto"`` stands for: ``"native"`` if there is one that can run on the device, and else ``"pytorch"``."""
    native = "native" in implementations and device.type == "cpu" and _native_is_available()
    return "native" if native else "pytorch"


def _native_is_available() -> bool:
    return library() is not None


# What torch.compiler.assume_constant_result does, without its import of torch._dynamo, which takes two seconds.
_native_is_available._dynamo_marked_constant = True  # type: ignore[attr-defined]
