"""The stratification stack in closed form, in plain PyTorch, for any device: tiles of steps, without a loop over steps.

Let H_t[i] be the strength of item i and of everything above it. The paper's cascades amount to

    H_t[i] = ReLU(H_{t-1}[i] - u_t) + d_t   (i < t),    H_t[t] = d_t,

and unrolled from step a on, with U_t = u_{a+1} + ... + u_t and P_t = d_{a+1} + ... + d_t, to

    H_t[i] = P_t - U_t + max(H_a[i], max_{a < j <= t} (U_j - P_{j-1}))   (i <= a),
    H_t[i] = P_t - U_t + max_{i <= j <= t} (U_j - P_{j-1})               (i > a).

The item i is read with the weight min(c_t, H_t[i]) - min(c_t, H_t[i+1]), where c_t is the read strength, usually 1.

Short sequences are one tile, with a = 0. Of long ones only H_a is kept from each tile of steps to the next, and the
backward pass computes the rest of a tile again.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from .._strengths import exact_strengths, is_future, limit_of
from .._transforms import is_transformed

TILE = 64


def stratification_stack_pytorch(
    pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0
) -> Tensor:
    """As ``stratification_stack_reference``, except for gradients where they are not unique."""
    length = values.size(1)
    if length == 0:
        return values.clone()  # of the same empty shape (B, 0, m)
    pop, push = exact_strengths(pop, push)
    before = pop[:, :0]
    amounts = [read_strength] if isinstance(read_strength, Tensor) else []
    if length <= 2 * TILE or torch.compiler.is_compiling() or is_transformed(pop, push, values, *amounts):
        return _tile(before, pop, push, values, read_strength)[0]
    readings = []
    for start in range(0, length, TILE):
        steps = slice(start, min(start + TILE, length))
        amount = read_strength[:, steps] if isinstance(read_strength, Tensor) else read_strength
        reading, before = checkpoint(
            _tile, before, pop[:, steps], push[:, steps], values[:, : steps.stop], amount,
            use_reentrant=False, preserve_rng_state=False,
        )  # fmt: skip
        readings.append(reading)
    return torch.cat(readings, 1)


def _tile(
    before: Tensor, pop: Tensor, push: Tensor, values: Tensor, read_strength: float | Tensor
) -> tuple[Tensor, Tensor]:
    """The readings of T steps, (B, T, m), and H_{a+T}, (B, a + T).

    Args:
        before: H_a, (B, a), in float64.
        pop: of these steps, (B, T), in float64.
        push: (B, T), in float64.
        values: v_1, ..., v_{a+T}.
        read_strength: a number, or (B, T).
    """
    popped, pushed = pop.cumsum(1), push.cumsum(1)
    deficits = popped - pushed + push  # U_j - P_{j-1}
    future = is_future(pop.size(1), pop.device)
    of_items = deficits.unsqueeze(2).masked_fill(future, -torch.inf).cummax(1).values  # [:, t, i]
    if before.size(1):
        older = torch.maximum(before.unsqueeze(1), of_items[:, :, :1])
        of_items, future = torch.cat([older, of_items], 2), pad(future, (before.size(1), 0))
    strengths = (pushed - popped).unsqueeze(2) + of_items
    after = strengths[:, -1].clone()  # a copy: a view would keep all of ``strengths``
    readable = strengths.clamp(max=limit_of(read_strength)).masked_fill(future, 0)
    weights = readable - pad(readable[..., 1:], (0, 1))
    return torch.bmm(weights.to(values.dtype), values), after
