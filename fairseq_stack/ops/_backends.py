"""Choice among the implementations of one stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

Implementation = TypeVar("Implementation", bound=Callable[..., object])


def choose_backend(
    op: str, backend: str, implementations: Mapping[str, Implementation], automatic: str
) -> Implementation:
    """Return the implementation that the ``backend`` argument of an op names.

    Args:
        op: the op's name, for the message.
        backend: ``"auto"`` or a key of ``implementations``.
        implementations: the op's implementations by backend name.
        automatic: the backend that ``"auto"`` stands for.

    Raises:
        ValueError: if there is no such backend.
    """
    name = automatic if backend == "auto" else backend
    if name not in implementations:
        known = ", ".join(repr(key) for key in ("auto", *implementations))
        raise ValueError(f"{op}: backend must be one of {known}, got {backend!r}")
    return implementations[name]
