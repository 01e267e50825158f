"""``fairseq.utils``: functions that round nothing down, and commands that are imported late."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_stack.compat.replacing import install, replaces
from fairseq_stack.ops import computation_dtype


@replaces("fairseq.utils:softmax", scriptable=True)
def softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """Compute in float32, or in float64 if the arguments are in float64.

    fairseq computes every softmax in float32, which is right for half precision but costs a model in float64
    eight digits, so that it cannot be compared exactly with another implementation.

    Unnecessary with a fairseq whose softmax does not reduce the precision.
    """
    return torch.softmax(x, dim, dtype=computation_dtype(x.dtype))


@replaces("fairseq.utils:log_softmax", scriptable=True)
def log_softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """Compute in float32, or in float64 if the arguments are in float64.

    Unnecessary with a fairseq whose softmax does not reduce the precision.
    """
    return torch.log_softmax(x, dim, dtype=computation_dtype(x.dtype))


@replaces("fairseq.utils:import_user_module")
def import_user_module(original: Any, args: Any) -> None:
    """Also change the running command if it was imported after this plugin.

    Each command of fairseq calls this function before it does anything else.

    Unnecessary with a fairseq without the changes to ``fairseq_cli``.
    """
    original(args)
    install()
