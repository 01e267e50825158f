"""``fairseq.optim.adam``: all parameters are updated at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fairseq_stack.compat.replacing import replaces

_AVERAGES = ("exp_avg", "exp_avg_sq")


@replaces("fairseq.optim.adam:Adam.step")
def step(original: Any, self: Any, closure: Callable[[], Any] | None = None) -> Any:
    """On a CPU, update all parameters by one call of PyTorch's fused Adam; equal to rounding, with the same state.

    Unnecessary with a fairseq that does not update one parameter after the other, in Python.
    """
    loss = None if closure is None else closure()
    with_gradient = [[p for p in group["params"] if p.grad is not None] for group in self.param_groups]
    if not all(_can_be_fused(p, self.state[p]) for parameters in with_gradient for p in parameters):
        original(self)
        return loss
    for group, parameters in zip(self.param_groups, with_gradient, strict=True):
        for count, same_count in _by_count(self.state, parameters, group).items():
            _update(self.state, same_count, count, group)
    return loss


def _can_be_fused(parameter: Tensor, state: dict[str, Any]) -> bool:
    """PyTorch expects the gradient and the averages in the memory layout of their parameter."""
    return (
        parameter.device.type == "cpu"
        and parameter.dtype in (torch.float32, torch.float64)
        and parameter.grad is not None
        and not parameter.grad.is_sparse
        and all(
            x.dtype == parameter.dtype and x.stride() == parameter.stride()
            for x in (parameter.grad, *(state[name] for name in _AVERAGES if name in state))
        )
    )


def _by_count(states: Any, parameters: list[Tensor], group: dict[str, Any]) -> dict[int, list[Tensor]]:
    """The parameters by the number of this update, which each counts for itself; new ones get a state as in fairseq."""
    names = (*_AVERAGES, "max_exp_avg_sq") if group.get("amsgrad", False) else _AVERAGES
    by_count = defaultdict(list)
    for parameter in parameters:
        state = states[parameter]
        if not state:
            state.update(step=0, **{name: torch.zeros_like(parameter) for name in names})
        state["step"] += 1
        by_count[state["step"]].append(parameter)
    return by_count


@torch.no_grad()
def _update(states: Any, parameters: list[Tensor], count: int, group: dict[str, Any]) -> None:
    """Update parameters of the same type for the ``count``-th time.

    PyTorch adds epsilon to a denominator that is larger by the factor sqrt(1 - beta2^count) than fairseq's.
    """
    (beta1, beta2), amsgrad = group["betas"], group.get("amsgrad", False)
    averages, squares = ([states[p][name] for p in parameters] for name in _AVERAGES)
    torch._fused_adamw_(
        parameters,
        [p.grad for p in parameters if p.grad is not None],
        averages,
        squares,
        [states[p]["max_exp_avg_sq"] for p in parameters] if amsgrad else [],
        [torch.tensor(float(count))] * len(parameters),
        lr=group["lr"],
        beta1=beta1,
        beta2=beta2,
        weight_decay=group["weight_decay"],
        eps=group["eps"] / math.sqrt(1 - beta2**count),
        amsgrad=amsgrad,
        maximize=False,
    )
