"""The stratification stack of Grefenstette et al. (2015), as in Hao et al. (2018), Section 2.1.

``reference.py`` pops, pushes and reads as the paper says, and is where to begin. ``pytorch.py`` has the same in closed
form, as cumulative sums and maxima, in tiles for long sequences; it runs on CPUs and GPUs, and autograd differentiates
it. ``state.py`` takes one step; what it shares with the queue is in ``ops/_item_state.py``.

An equation that changes, changes in ``reference.py``, ``pytorch.py: _tile``, ``state.py: _after`` and
``_native/src/controller_memory.h``.
"""

from __future__ import annotations

from torch import Tensor

from .._backends import Backend, Op, RandomTensor, by_name
from .._strengths import read_items
from .pytorch import stratification_stack_pytorch
from .reference import stratification_stack_reference
from .state import StratificationStackState

__all__ = ["StratificationStackState", "stratification_stack"]

BACKENDS = by_name(
    Backend("pytorch", stratification_stack_pytorch),
    Backend("reference", stratification_stack_reference),
)


def stratification_stack(
    pop: Tensor, push: Tensor, values: Tensor, *, read_strength: float | Tensor = 1.0, backend: str = "auto"
) -> Tensor:
    """Read the top of a stratification stack after each of n steps (Section 2.1 of Hao et al., 2018).

    Each step pops, then pushes, then reads. Popping takes the strength u_t away from the top downwards,
    until it is used up or the stack is empty:

        s_t[i] = ReLU(s_{t-1}[i] - u_t[i]),    u_t[t-1] = u_t,    u_t[i] = ReLU(u_t[i+1] - s_{t-1}[i+1]).

    Pushing puts v_t on top with the strength s_t[t] = d_t. Reading takes the top items up to the
    strength c_t, which is 1 in the paper:

        r_t = sum_i min(s_t[i], rho_t[i]) v_i,    rho_t[t] = c_t,    rho_t[i] = ReLU(rho_t[i+1] - s_t[i+1]).

    Strengths are usually in [0, 1]; the equations make sense if they are not negative. Readings are
    continuous in the strengths but have kinks, where a strength is used up exactly. There gradients are not
    unique, and the backends may return different ones. Both backends support ``torch.func``, forward-mode and second
    derivatives.

    Args:
        pop: (B, n), the strengths u_t >= 0.
        push: (B, n), the strengths d_t >= 0.
        values: (B, n, m), the pushed vectors v_t.
        read_strength: the strengths c_t >= 0, a number or (B, n).
        backend: ``"auto"``, ``"pytorch"`` (closed form, in tiles of 64 steps where there are more than 128; its weights
            have an absolute error of about 1e-16 times the sum of all strengths) or ``"reference"`` (the equations).

    Returns:
        The readings (B, n, m), in the dtype of the arguments; computed in float32 or float64, whatever autocast says.
        They are linear in the values: with e_1..e_n in their place, reading t has the weights of v_1..v_n in r_t.
        If u_t or d_t is not finite, the readings are NaN from step t on. If a component of v_t is not finite, that
        component of the readings is NaN from step t on. If c_t is not finite, reading t is NaN. Earlier readings, and
        gradients through them, are the same as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, the read strength is a number below 0 or
            not finite, or there is no such backend.
    """
    return read_items("stratification_stack", BACKENDS, pop, push, values, read_strength, backend)


def _example(random: RandomTensor, length: int) -> tuple[Tensor, ...]:
    return random(2, length), random(2, length), random(2, length, 5)


OP = Op("stratification_stack", stratification_stack, BACKENDS, _example)
