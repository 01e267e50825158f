"""``fairseq.utils``: functions that round nothing down, norms of gradients, and commands that are imported late."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fairseq_stack.compat.replacing import install, replaces
from fairseq_stack.ops import computation_dtype


@replaces("fairseq.utils:softmax", scriptable=True)
def softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """Compute in float32, or in float64 if the arguments are in float64; on a CPU, 0 where all is masked, not NaN.

    fairseq computes every softmax in float32, which is right for half precision but costs a model in float64
    eight digits, so that it cannot be compared exactly with another implementation. A decoder's padding on the left may
    attend to nothing, which is 0 in PyTorch's attention.

    Unnecessary with a fairseq whose softmax does not reduce the precision and has no NaN.
    """
    probabilities = torch.softmax(x, dim, dtype=computation_dtype(x.dtype))
    if x.device.type == "cpu" and x.numel() > 0 and bool(probabilities.select(dim, 0).isnan().any()):
        all_masked = x.eq(-float("inf")).all(dim, keepdim=True)
        probabilities = torch.softmax(x.masked_fill(all_masked, 0.0), dim, dtype=computation_dtype(x.dtype))
        probabilities = probabilities.masked_fill(all_masked, 0.0)
    return probabilities


@replaces("fairseq.utils:log_softmax", scriptable=True)
def log_softmax(x: Tensor, dim: int, onnx_trace: bool = False) -> Tensor:
    """Compute in float32, or in float64 if the arguments are in float64.

    Unnecessary with a fairseq whose softmax does not reduce the precision.
    """
    return torch.log_softmax(x, dim, dtype=computation_dtype(x.dtype))


@replaces("fairseq.utils:clip_grad_norm_")
def clip_grad_norm(original: Any, params: Any, max_norm: float, aggregate_norm_fn: Any = None) -> Tensor:
    """On a CPU, compute the norms of all gradients at once; the result is the same bit for bit.

    Unnecessary with a fairseq that does not compute one norm after the other, in Python.
    """
    params = [params] if isinstance(params, Tensor) else list(params)
    with_gradient = [p for p in params if p is not None and p.grad is not None]
    grads = [p.grad.detach() for p in with_gradient]
    if len(grads) < 2 or not all(_is_plain(g) for g in grads):
        return original(params, max_norm, aggregate_norm_fn)
    if any(hasattr(p, "expert") for p in with_gradient):  # part of a mixture, whose norm does not count
        return original(params, max_norm, aggregate_norm_fn)
    norm = torch.norm(torch.stack(torch._foreach_norm(grads, 2, dtype=torch.float32)))
    if aggregate_norm_fn is not None:
        norm = aggregate_norm_fn(norm)
    if max_norm > 0:
        coefficient = (float(max_norm) / (norm + 1e-6)).clamp_(max=1)
        if coefficient != 1:
            torch._foreach_mul_(grads, coefficient)
    return norm


def _is_plain(gradient: Tensor) -> bool:
    """Whether its norm, which fairseq computes in float32, can be computed together with others."""
    return gradient.device.type == "cpu" and gradient.dtype == torch.float32 and not gradient.is_sparse


@replaces("fairseq.utils:import_user_module")
def import_user_module(original: Any, args: Any) -> None:
    """Also change the running command if it was imported after this plugin.

    Each command of fairseq calls this function before it does anything else.

    Unnecessary with a fairseq without the changes to ``fairseq_cli``.
    """
    original(args)
    install()
