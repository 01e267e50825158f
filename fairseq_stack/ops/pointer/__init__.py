"""The pointer stack of DeltaStack: cells, and a pointer that pushes and pops move by fractions of a cell.

``reference.py`` is the recurrence, and is where to begin; ``pointers.py`` says where the pointer is. ``pytorch.py``
makes a delta rule of it. ``state.py`` takes one step, or several.

An equation that changes, changes in ``reference.py`` and ``pytorch.py: extend``. Only ``pointers.py`` has the equations
of pointers and addresses.
"""

from __future__ import annotations

from torch import Tensor

from .._arguments import Sizes, check_sizes, computation_dtype, without_autocast
from .._backends import Backend, Op, RandomTensor, by_name, choose_backend
from .._undefined import causal, finite, mark
from .pointers import addresses_of, positions
from .pytorch import pointer_stack_pytorch
from .reference import pointer_stack_reference
from .state import PointerStackState, check_actions

__all__ = ["PointerStackState", "addresses_of", "pointer_stack", "positions"]

BACKENDS = by_name(Backend("pytorch", pointer_stack_pytorch), Backend("reference", pointer_stack_reference))


def pointer_stack(
    push: Tensor,
    pop: Tensor,
    values: Tensor,
    kappa: Tensor,
    *,
    cells: int = 64,
    clamped: bool = False,
    backend: str = "auto",
) -> Tensor:
    """Read the cell at the pointer of a stack of C cells after each of n steps.

    The position z_t of the pointer is a real number, and the address a_t spreads over the cells around it. A step pops
    at the old address, moves the pointer, and pushes at the new address:

        z_t = z_{t-1} + p_t - u_t,    c_t = min(max(z_t, 0), C - 1)
        a_t[j] ~ exp(-s |j - c_t|) for j = 0, ..., C - 1,    s = log(1 + exp(kappa))
        M'_t = M_{t-1} - u_t a_{t-1} (a_{t-1}^T M_{t-1})
        M_t = M'_t + p_t a_t (v_t - M'_t^T a_t)^T,    r_t = M_t^T a_t

    with M_0 = 0 (C x m), z_0 = 0, and a_t summing to 1. Cell 0 stands for the empty stack: a push from there writes to
    cell 1. Pops from an empty stack are a debt, which as many pushes only pay back, and pushes onto a full stack a
    credit; with ``clamped`` there is neither, since z_t is kept in [0, C - 1].

    Readings and gradients have kinks where the pointer is at an integer. Where z_t is not in [0, C - 1], no gradient
    flows to it.

    Args:
        push: (B, n), the strengths p_t in [0, 1].
        pop: (B, n), the strengths u_t in [0, 1].
        values: (B, n, m), the pushed vectors v_t.
        kappa: (B,), how sharp addresses are.
        cells: C.
        clamped: keep z_t in [0, C - 1].
        backend: ``"auto"``, ``"pytorch"`` (chunks of 32 steps) or ``"reference"`` (the equations). Both support
            ``torch.func``, with forward-mode and second derivatives.

    Returns:
        The readings (B, n, m), in the dtype of the arguments; computed in float32 or float64, whatever autocast says.
        They are linear in the values: with e_1..e_n in their place, reading t has the weights of v_1..v_n in r_t, which
        may be slightly below 0, since addresses overlap. If p_t or u_t is not finite, the readings are NaN from step t
        on. If a component of v_t is not finite, that component of the readings is NaN from step t on. Earlier readings,
        and gradients through them, are the same as with any other numbers in its place. If kappa is not finite, all
        readings of its row are NaN.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, ``cells`` is below 1, or the backend is
            unknown.
    """
    sizes = Sizes()
    check_actions(sizes, push, pop, values)
    sizes.check("kappa", kappa, "B")
    check_sizes(cells=cells)
    compute = choose_backend("pointer_stack", backend, BACKENDS, values.device)
    dtype = computation_dtype(values.dtype)
    known = finite(kappa).to(dtype)

    def read(*arguments: Tensor) -> Tensor:
        readings: Tensor = compute(*arguments, kappa=known, cells=cells, clamped=clamped)
        return readings

    with without_autocast(values.device):
        readings = causal(read)(push.to(dtype), pop.to(dtype), values.to(dtype)) + mark(kappa)[:, None, None]
    return readings.to(values.dtype)


def _example(random: RandomTensor, length: int) -> tuple[Tensor, ...]:
    strengths = random(2, length, 3).softmax(-1)
    return strengths[..., 0], strengths[..., 1], random(2, length, 5), random(2)


OP = Op("pointer_stack", pointer_stack, BACKENDS, _example)
