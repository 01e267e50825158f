"""How shims replace functions of fairseq."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def wrap_once(owner: Any, name: str, wrapper: Callable[[Function], Function]) -> None:
    """Replace a function of a class or module by ``wrapper(function)``, unless that was done before."""
    original = function = getattr(owner, name)
    while function is not None:
        if getattr(function, "wrapper", None) is wrapper:
            return
        function = getattr(function, "__wrapped__", None)
    wrapped = functools.wraps(original)(wrapper(original))
    wrapped.wrapper = wrapper  # type: ignore[attr-defined]
    setattr(owner, name, wrapped)
