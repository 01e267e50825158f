"""In place of ``fairseq.nan_detector``: which values of a model are not finite."""

from __future__ import annotations

import math
from typing import Any

from torch import nn


def infinite_loss(logged: dict[str, Any] | None) -> str:
    """What is wrong with the loss that a step of fairseq's trainer has logged, or an empty string."""
    loss = float((logged or {}).get("loss", 0.0))
    return "" if math.isfinite(loss) else f"the loss is {loss}"


def infinite_parameter(model: nn.Module) -> str | None:
    """The name of the first parameter that is not finite, or None."""
    return next((name for name, value in model.named_parameters() if not value.isfinite().all()), None)


def infinite_value(model: nn.Module) -> str:
    """Which parameter is not finite, or which gradient's norm."""
    parameter = infinite_parameter(model)
    if parameter is not None:
        return f"the parameter {parameter} is not finite"
    norms = {name: value.grad.norm().item() for name, value in model.named_parameters() if value.grad is not None}
    for name, norm in reversed(norms.items()):  # the backward pass reaches the last parameter first
        if not math.isfinite(norm):
            return f"the norm of the gradient of {name} is {norm}"
    return "all parameters and gradients are finite"
