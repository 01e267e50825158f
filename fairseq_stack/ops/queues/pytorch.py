"""The queue in closed form, in plain PyTorch: runs on any device, without a loop over time.

Let U_t = u_1 + ... + u_t and P_t = d_1 + ... + d_t. The pops that have taken nothing, since the queue was empty, shift
the place of what is pushed later: by M_j = max_{i <= j} (U_i - P_{i-1}). Item j lies before the place

    E_j = P_j + M_j,

and the pops have come to U_t. The strength of item j and of everything in front of it is F_t[j] = ReLU(E_j - U_t).
It is read with the weight min(c_t, F_t[j]) - min(c_t, F_t[j-1]), where c_t is the read strength, usually 1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._strengths import exact_strengths, is_future, limit_of


def queue_pytorch(pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0) -> Tensor:
    """As ``queue_reference``, except for gradients where they are not unique."""
    if values.size(1) == 0:
        return values.clone()  # of the same empty shape (B, 0, m)
    return torch.bmm(_weights(pop, push, read_strength).to(values.dtype), values)


def _weights(pop: Tensor, push: Tensor, read_strength: float | Tensor) -> Tensor:
    """(B, n, n): [:, t, j] is the weight of item j in reading t, in float64."""
    future = is_future(pop.size(1), pop.device)
    pop, push = exact_strengths(pop, push)
    popped, pushed = pop.cumsum(1), push.cumsum(1)
    ends = pushed + (popped - pad(pushed[:, :-1], (1, 0))).cummax(1).values
    in_front = torch.relu(ends.unsqueeze(1) - popped.unsqueeze(2))  # [:, t, j]
    readable = in_front.clamp(max=limit_of(read_strength))
    return (readable - pad(readable[..., :-1], (1, 0))).masked_fill(future, 0)
