"""The stratification stack in closed form, in plain PyTorch: runs on any device, without a loop over time.

Let H_t[i] be the strength of item i and of everything above it. The paper's cascades amount to

    H_t[i] = ReLU(H_{t-1}[i] - u_t) + d_t   (i < t),    H_t[t] = d_t,

and unrolled, with U_t = u_1 + ... + u_t and P_t = d_1 + ... + d_t, to

    H_t[i] = P_t - U_t + max_{i <= j <= t} (U_j - P_{j-1}).

The item i is read with the weight min(c_t, H_t[i]) - min(c_t, H_t[i+1]), where c_t is the read strength, usually 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._strengths import exact_strengths, is_future, limit_of
from .._undefined import causal


@causal
def stratification_stack_pytorch(
    pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0
) -> Tensor:
    """As ``stratification_stack_reference``, except for gradients where they are not unique."""
    if values.size(1) == 0:
        return values.clone()  # of the same empty shape (B, 0, m)
    return torch.bmm(_weights(pop, push, read_strength).to(values.dtype), values)


def _weights(pop: Tensor, push: Tensor, read_strength: float | Tensor) -> Tensor:
    """(B, n, n): [:, t, i] is the weight of item i in reading t, in float64."""
    future = is_future(pop.size(1), pop.device)
    pop, push = exact_strengths(pop, push)
    popped, pushed = pop.cumsum(1), push.cumsum(1)
    deficits = (popped - pushed + push).unsqueeze(2).masked_fill(future, -torch.inf)  # [:, j, i]
    strengths = (pushed - popped).unsqueeze(2) + deficits.cummax(1).values
    readable = strengths.clamp(max=limit_of(read_strength)).masked_fill(future, 0)
    return readable - pad(readable[..., 1:], (0, 1))
