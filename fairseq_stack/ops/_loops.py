"""Loops over all steps of a recurrent network as one operation: when that is possible."""

from __future__ import annotations

import torch
from torch import Tensor

from ._backends import native_obstacle
from ._transforms import is_transformed


def loop_is_compiled(*arguments: Tensor) -> bool:
    """Whether ``stack_lstm`` and ``neural_stack`` take these tensors, and compute with them on the compiled kernels.

    They take tensors on the CPU, all in float32 or all in float64. Under autocast, ``torch.func`` and forward-mode
    derivatives, a network needs the steps one by one.
    """
    device, dtype = arguments[0].device, arguments[0].dtype
    fits = dtype in (torch.float32, torch.float64) and all(x.dtype == dtype for x in arguments)
    plain = not torch.is_autocast_enabled(device.type) and not is_transformed(*arguments)
    return fits and plain and native_obstacle(device) is None
