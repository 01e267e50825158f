"""The delta rule of DeltaNet (Schlag et al., 2021), with decay (Yang et al., 2025) and with several updates per step.

``reference.py`` is the recurrence, and is where to begin. ``pytorch.py`` computes chunks of updates at once; autograd
differentiates it. ``state.py`` takes one step, or several. The pointer stack (``ops/pointer/``) is the delta
rule with addresses as keys.

An equation that changes, changes in ``reference.py``, ``pytorch.py: _chunk`` and ``state.py: _step``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .._arguments import computation_dtype, without_autocast
from .._backends import Backend, Op, RandomTensor, by_name, choose_backend
from .._undefined import finite, mark
from .pytorch import delta_rule_pytorch
from .reference import delta_rule_reference
from .state import DeltaRuleState, check_updates, marks_of_updates

__all__ = ["DeltaRuleState", "delta_rule"]

BACKENDS = by_name(Backend("pytorch", delta_rule_pytorch), Backend("reference", delta_rule_reference))


def delta_rule(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    strengths: Tensor,
    log_decays: Tensor | None = None,
    *,
    backend: str = "auto",
) -> Tensor:
    """Read an associative memory after each of n steps, in each of which U values are written to it.

    The memory S is a matrix (k, v), 0 at first. Step t scales it by its decay, and then corrects what it holds for the
    keys k_tj, j = 1, ..., U, towards the values v_tj. It is read with the query q_t:

        S <- exp(l_t) S,    S <- S + beta_tj k_tj (v_tj - S^T k_tj)^T,    o_t = S^T q_t / sqrt(k).

    With keys of length 1, an update has the eigenvalue 1 - beta_tj in the direction of its key: beta_tj in (0, 1) lets
    the memory forget, and in (0, 2) also change its sign (Grazzi et al., 2025). Larger products beta_tj |k_tj|^2 let
    the memory grow from step to step. Several updates per step are the products of Householder matrices of DeltaProduct
    (Siems et al., 2025).

    Args:
        queries: (B, n, k), q_t.
        keys: (B, n, U, k), k_tj.
        values: (B, n, U, v), v_tj.
        strengths: (B, n, U), beta_tj.
        log_decays: (B, n), l_t <= 0; None for no decay.
        backend: ``"auto"``, ``"pytorch"`` (chunks of 64 updates) or ``"reference"`` (the equations). Both support
            ``torch.func``, with forward-mode and second derivatives.

    Returns:
        The readings (B, n, v), in the dtype of the arguments; computed in float32 or float64, whatever autocast says.
        If a key, a strength or the decay of step t is not finite, the readings are NaN from step t on. If a component
        of v_tj is not finite, that component of the readings is NaN from step t on. If q_t is not finite, reading t is
        NaN. Earlier readings, and gradients through them, are the same as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, or the backend is unknown.
    """
    check_updates(queries, keys, values, strengths, log_decays)
    compute = choose_backend("delta_rule", backend, BACKENDS, values.device)
    dtype = computation_dtype(values.dtype)
    with without_autocast(values.device):
        marks = marks_of_updates(keys, values, strengths, log_decays) + mark(queries).sum(2, keepdim=True)
        decays = None if log_decays is None else finite(log_decays).to(dtype)
        updates = (finite(x).to(dtype) for x in (queries, keys, values, strengths))
        return (compute(*updates, decays) + marks).to(values.dtype)


def _example(random: RandomTensor, length: int) -> tuple[Tensor, ...]:
    keys = torch.nn.functional.normalize(random(2, length, 2, 3), dim=-1)
    return random(2, length, 3), keys, random(2, length, 2, 5), 2 * random(2, length, 2), -random(2, length)


OP = Op("delta_rule", delta_rule, BACKENDS, _example)
