"""The stratification stack in closed form, in plain PyTorch: runs on any device, without a loop over time.

Let H_t[i] be the strength of item i and of everything above it. The paper's cascades amount to

    H_t[i] = ReLU(H_{t-1}[i] - u_t) + d_t   (i < t),    H_t[t] = d_t,

and unrolled, with U_t = u_1 + ... + u_t and P_t = d_1 + ... + d_t, to

    H_t[i] = P_t - U_t + max_{i <= j <= t} (U_j - P_{j-1}).

The item i is read with the weight min(1, H_t[i]) - min(1, H_t[i+1]).
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._undefined import causal


@causal
def stratification_stack_pytorch(pop: Tensor, push: Tensor, values: Tensor) -> Tensor:
    """As ``stratification_stack_reference``, except for gradients where they are not unique."""
    if values.size(1) == 0:
        return values.clone()  # of the same empty shape (B, 0, m)
    return torch.bmm(_weights(pop, push).to(values.dtype), values)


def _weights(pop: Tensor, push: Tensor) -> Tensor:
    """(B, n, n): [:, t, i] is the weight of item i in reading t, in float64."""
    length = pop.size(1)
    # The closed form subtracts sums over the whole sequence, which needs more digits than float32 has.
    largest = torch.finfo(torch.float64).max / (4 * max(length, 1))
    pop, push = pop.double().clamp(max=largest), push.double().clamp(max=largest)
    popped, pushed = pop.cumsum(1), push.cumsum(1)
    future = torch.ones(length, length, dtype=torch.bool, device=pop.device).triu(1)  # i > t
    deficits = (popped - pushed + push).unsqueeze(2).masked_fill(future, -torch.inf)  # [:, j, i]
    strengths = (pushed - popped).unsqueeze(2) + deficits.cummax(1).values
    readable = strengths.clamp(max=1).masked_fill(future, 0)
    return readable - pad(readable[..., 1:], (0, 1))
