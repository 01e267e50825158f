"""What ops share that pop, push and read strengths.

The closed forms subtract sums over whole sequences, which needs more digits than float32 has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ._arguments import Sizes, computation_dtype, without_autocast
from ._backends import Backend, choose_backend
from ._undefined import causal


def read_items(
    op: str,
    backends: Mapping[str, Backend],
    pop: Tensor,
    push: Tensor,
    values: Tensor,
    read_strength: float | Tensor,
    backend: str,
) -> Tensor:
    """Check the arguments of a stack or a queue, and compute its readings (B, n, m) by a backend."""
    sizes = Sizes()
    sizes.check("pop", pop, "B n")
    sizes.check("push", push, "B n")
    sizes.check("values", values, "B n m")
    if isinstance(read_strength, Tensor):
        sizes.check("read_strength", read_strength, "B n")
    elif not (isinstance(read_strength, int | float) and 0 <= read_strength < math.inf):
        raise ValueError(f"read_strength: expected a tensor or a finite number from 0 on, got {read_strength!r}")
    compute = choose_backend(op, backend, backends, values.device)
    dtype = computation_dtype(values.dtype)
    amount = read_strength.to(dtype) if isinstance(read_strength, Tensor) else read_strength
    with without_autocast(values.device):
        readings = causal(compute)(pop.to(dtype), push.to(dtype), values.to(dtype), read_strength=amount)
    return readings.to(values.dtype)


def exact_strengths(*strengths: Tensor) -> list[Tensor]:
    """Strengths (B, n) in float64, so small that sums of them are finite."""
    largest = torch.finfo(torch.float64).max / (4 * max(strengths[0].size(1), 1))
    return [x.double().clamp(max=largest) for x in strengths]


def is_future(length: int, device: torch.device) -> Tensor:
    """(n, n): whether item i comes after step t, at [t, i]."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def limit_of(read_strength: float | Tensor) -> float | Tensor:
    """What ``clamp`` has to limit strengths (B, n, items) to: the number, or (B, n, 1)."""
    return read_strength.double().unsqueeze(2) if isinstance(read_strength, Tensor) else read_strength
