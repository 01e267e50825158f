"""The delta rule as its papers write it: slow, and easy to check against the equations."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def delta_rule_reference(
    queries: Tensor, keys: Tensor, values: Tensor, strengths: Tensor, log_decays: Tensor | None
) -> Tensor:
    """The equations of :func:`.delta_rule`, differentiated by autograd.

    Args:
        queries: (B, n, k), q_t.
        keys: (B, n, U, k), k_tj.
        values: (B, n, U, v), v_tj.
        strengths: (B, n, U), beta_tj.
        log_decays: (B, n), l_t; or None for no decay.

    Returns:
        (B, n, v), the readings o_t.
    """
    batch_size, length, num_updates, key_size = keys.shape
    memory = values.new_zeros(batch_size, key_size, values.size(3))  # S_0
    readings = []
    for t in range(length):
        if log_decays is not None:
            memory = log_decays[:, t, None, None].exp() * memory
        for j in range(num_updates):
            key, value, strength = keys[:, t, j], values[:, t, j], strengths[:, t, j, None]
            error = value - torch.einsum("bkv,bk->bv", memory, key)
            memory = memory + torch.einsum("bk,bv->bkv", strength * key, error)
        readings.append(torch.einsum("bkv,bk->bv", memory, queries[:, t]) / math.sqrt(key_size))
    return torch.stack(readings, 1) if readings else values.sum(2)
