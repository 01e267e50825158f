"""The delta rule in plain PyTorch, for any device: chunks of updates, without a loop over the updates of a chunk.

Let i and j number the updates of a chunk, S the memory before it, and G_i the sum of the log decays of the chunk up to
update i. An update adds k_i x_i^T to the memory, where x_i = beta_i (v_i - S_{i-1}^T k_i) depends on the x of the
updates before it. Written for all updates at once, with the x_i as the rows of X:

    (I + L) X = diag(beta) (V - diag(e^G) K S),    L_ij = beta_i e^{G_i - G_j} k_i . k_j  for j < i, and 0 otherwise.

The matrix is triangular with ones on its diagonal. Readings and the memory after the chunk are sums over X. The inverse
has no large entries as long as beta |k|^2 <= 2, since each factor I - beta k k^T is then a contraction.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

UPDATES = 64
"""How many updates a chunk has, unless one step has more."""


def delta_rule_pytorch(
    queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None
) -> Tensor:
    """As ``delta_rule_reference``."""
    memory = values.new_zeros(len(values), keys.size(3), values.size(3))
    return extend(memory, queries, keys, values, strengths, log_decays)[0]


def extend(
    memory: Tensor, queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The readings (B, n, v) of n steps after those that left the memory S (B, k, v), and the memory after them."""
    if not strengths.size(1):
        return queries @ memory, memory
    arguments = (x for x in (queries, keys, values, strengths, log_decays) if x is not None)
    readings = []
    for chunk in zip(*(x.split(max(1, UPDATES // strengths.size(2)), 1) for x in arguments), strict=True):
        reading, memory = _chunk(memory, *chunk)
        readings.append(reading)
    return torch.cat(readings, 1), memory


def _chunk(
    memory: Tensor, queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """As ``extend``, for the steps of a chunk."""
    length, num_updates = strengths.shape[1:]
    keys, values, strengths = keys.flatten(1, 2), values.flatten(1, 2), strengths.flatten(1, 2).unsqueeze(2)
    overlaps, reads = keys @ keys.mT, queries @ keys.mT
    known, read, kept = keys @ memory, queries @ memory, keys
    if log_decays is not None:
        of_steps = log_decays.double().clamp(min=-1e3).cumsum(1)  # exp(-1000) is 0; differences need all digits
        total = of_steps.repeat_interleave(num_updates, 1)
        later = torch.ones(overlaps.shape[1:], dtype=torch.bool, device=keys.device).triu(1)
        decay = (total.unsqueeze(2) - total.unsqueeze(1)).masked_fill(later, -torch.inf).exp().to(keys.dtype)
        overlaps, reads = overlaps * decay, reads * decay[:, num_updates - 1 :: num_updates]
        until_now = of_steps.exp().to(keys.dtype)
        known, read = known * total.exp().to(keys.dtype).unsqueeze(2), read * until_now.unsqueeze(2)
        kept, memory = keys * decay[:, -1].unsqueeze(2), memory * until_now[:, -1, None, None]
    added = torch.linalg.solve_triangular(  # which reads L below its diagonal only
        strengths * overlaps, strengths * (values - known), upper=False, unitriangular=True
    )
    until = torch.arange(num_updates, (length + 1) * num_updates, num_updates, device=keys.device)
    unread = torch.arange(length * num_updates, device=keys.device) >= until.unsqueeze(1)
    readings = read + reads.masked_fill(unread, 0) @ added
    return readings / math.sqrt(keys.size(2)), memory + kept.mT @ added
