"""A step of the stratification stack by Triton kernels, for GPUs, as ``_native_step.py`` by compiled ones."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def forward(
    settled: Tensor, recent: Sequence[Tensor], strengths: Tensor, pop: Tensor, push: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """The reading and H_t; arguments, which are finite, as for ``_native_step.forward``."""
    from .._triton.stratification import launch

    after, weights = launch.step(*_contiguous(strengths, pop, push))
    return _read(weights, _items(settled, recent)), after, True


def backward(
    settled: Tensor,
    recent: Sequence[Tensor],
    derivatives: Tensor,
    strengths: Tensor,
    pop: Tensor,
    push: Tensor,
    after: Tensor,
    of_reading: Tensor | None,
    of_after: Tensor | None,
) -> list[Tensor]:
    """The gradients; arguments and results as for ``_native_step.backward``."""
    from .._triton.stratification import launch

    strengths, pop, push = _contiguous(strengths, pop, push)
    (of_after,) = _contiguous(torch.zeros_like(after) if of_after is None else of_after)
    of_weights = torch.zeros_like(after)
    if of_reading is not None:
        of_weights = torch.bmm(_items(settled, recent), of_reading[:, :, None])[..., 0].contiguous()
        _, weights = launch.step(strengths, pop, push)
        derivatives += weights[:, -len(derivatives) :].transpose(0, 1)[..., None] * of_reading
    return list(launch.step_gradients(strengths, pop, push, of_after, of_weights))


def _contiguous(*tensors: Tensor) -> list[Tensor]:
    return [x.resolve_neg().contiguous() for x in tensors]


def _items(settled: Tensor, recent: Sequence[Tensor]) -> Tensor:
    """v_1..v_t, (B, t, m)."""
    return torch.cat([settled, torch.stack(list(recent), 1)], 1)


def _read(weights: Tensor, items: Tensor) -> Tensor:
    with torch.autocast(items.device.type, enabled=False):
        return torch.bmm(weights[:, None], items)[:, 0]
