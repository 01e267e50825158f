"""Where kernels for GPUs run."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

Result = TypeVar("Result")


def on_their_device(launch: Callable[..., Result]) -> Callable[..., Result]:
    """Launch kernels on the device of the tensors that a function gets: Triton launches them on the current one."""

    @functools.wraps(launch)
    def launch_there(*arguments: Any) -> Result:
        with torch.cuda.device_of(next(x for x in arguments if isinstance(x, Tensor))):
            return launch(*arguments)

    return launch_there
