"""What is not finite, such as garbage at padded positions, reaches no reading of an earlier step and no gradient of one.

Those do not depend on it, but to compute them takes products with it and with weights or derivatives that are 0, and
0 * NaN = NaN. So the stacks compute with ordinary numbers in its place, and make NaN what depends on it in the end.
The compiled kernels do so on their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def finite(x: Tensor) -> Tensor:
    """``x`` with 0, whose gradient is 0, in the place of what is not finite."""
    return x.nan_to_num(0, 0, 0)


def undefined_components(values: Tensor, *others: Tensor) -> Tensor:
    """Which components of a step's ``values`` (..., m) are not finite; all where something in ``others`` is not.

    Args:
        values: (B, n, m), or (B, m) for one step.
        others: (B, n, ...), or (B, ...).
    """
    undefined = ~values.isfinite()
    for x in others:
        undefined = undefined | ~x.unsqueeze(-1).flatten(values.dim() - 1).isfinite().all(-1, keepdim=True)
    return undefined


def from_then_on(undefined: Tensor) -> Tensor:
    """Which steps (B, n, ...) are undefined or come after one that is."""
    return undefined.cumsum(1) > 0


def undefine(x: Tensor, undefined: Tensor) -> Tensor:
    """``x`` with NaN where it is ``undefined``, a mask that can be expanded to its shape.

    The gradient of a loss is NaN where it depends on that, and 0 where it does not.
    """
    result: Tensor = _Undefine.apply(x, undefined)
    return result


class _Undefine(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, undefined: Tensor) -> Tensor:
        return torch.where(undefined, torch.nan, x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (undefined,) = ctx.saved_tensors
        return torch.where(undefined & (grad != 0), torch.nan, grad), None


def causal(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Keep what is not finite from earlier steps.

    Args:
        compute: the readings (B, n, m) of a stack, given arguments (B, n, ...), of which the last are the values
            (B, n, m).
    """

    @functools.wraps(compute)
    def compute_causally(*arguments: Tensor) -> Tensor:
        undefined = from_then_on(undefined_components(arguments[-1], *arguments[:-1]))
        return undefine(compute(*map(finite, arguments)), undefined)

    return compute_causally
