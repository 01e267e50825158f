"""The superposition stack of Joulin and Mikolov (2015), as in DuSell and Chiang (2024), Section 3.2.1.

Eqs. 5-8 are ``reference.py``: each element of the next stack is a mixture of what push, no-op and pop would put there.
Begin to read there. ``pytorch.py`` walks over the steps and keeps the stacks between segments only; ``native.py``
(``_native/src/superposition*.h``) runs on CPUs; ``gpu.py`` computes the weights of the pushed vectors by Triton.
``state.py`` takes one step, by kernels (``_native_step.py``) or in PyTorch. A depth limit cuts off what lies deeper, in
all of them.

An equation that changes, changes in ``reference.py``, ``pytorch.py: _walk`` and ``_walk_back``,
``state.py: SuperpositionStackState._plain``, ``superposition_steps.h: sup_step``, ``superposition_state.h``,
``recurrent_superposition.h`` and ``_triton/superposition/kernels.py``.
"""

from __future__ import annotations

from torch import Tensor

from .._arguments import Sizes, check_sizes, computation_dtype, without_autocast
from .._backends import Backend, Op, RandomTensor, by_name, choose_backend, native_obstacle, triton_obstacle
from .gpu import superposition_stack_triton
from .native import superposition_stack_native
from .pytorch import superposition_stack_pytorch
from .reference import superposition_stack_reference
from .state import SuperpositionStackState

__all__ = ["SuperpositionStackState", "superposition_stack"]

BACKENDS = by_name(
    Backend("native", superposition_stack_native, native_obstacle),
    Backend("triton", superposition_stack_triton, triton_obstacle),
    Backend("pytorch", superposition_stack_pytorch),
    Backend("reference", superposition_stack_reference),
)


def superposition_stack(
    actions: Tensor, values: Tensor, *, depth_limit: int | None = None, backend: str = "auto"
) -> Tensor:
    """Read the top of a superposition stack after each of n steps (Eqs. 5-8 of DuSell and Chiang, 2024).

    The stack starts with zero vectors all the way down (V_0 = [0]). With a_t = ``actions[:, t-1]``,

        V_t[i] = a_t^push ABOVE_t(i) + a_t^noop AT_t(i) + a_t^pop BELOW_t(i),    r_t = V_t[1],

    where ABOVE_t, AT_t and BELOW_t are V_{t-1} with v_t put on top, as it is, and without its top element.
    If the weights of each step sum to 1, r_t is the mean, over all sequences of t actions, of the vector that
    they leave on top (Eq. 13), or 0 where they leave the stack empty; a pop leaves an empty stack empty.
    Weights of other sizes and signs are allowed, as long as their products are in the range of the dtype.

    All backends support ``torch.func``: grad, vjp, jacrev and vmap, in any nesting. Forward-mode and second
    derivatives need ``backend="reference"``.

    Args:
        actions: (B, n, 3), the weights of push, no-op and pop in each step, in that order.
        values: (B, n, m), the pushed vectors v_t.
        depth_limit: how many elements D the stack holds, as in DuSell and Chiang (2022): V_t[i] = 0 for i > D. Then
            O(n D m) operations and memory that is linear in n suffice, except with ``"triton"``, whose memory is
            quadratic in n. None for no limit.
        backend: ``"auto"``, ``"native"`` (compiled, for the CPU), ``"triton"`` (for GPUs), ``"pytorch"`` (vectorised)
            or ``"reference"`` (the equations, for autograd to differentiate). Only the last has second and forward-mode
            derivatives; the others raise RuntimeError.

    Returns:
        The readings (B, n, m), in the dtype of the arguments; computed in float32 or float64, whatever autocast says.
        They are linear in the values: with e_1..e_n in their place, reading t has the weights of v_1..v_n in r_t.
        If an action of step t is not finite, the readings are NaN from step t on. If a component of v_t is not finite,
        that component of the readings is NaN from step t on. Earlier readings, and gradients through them, are the same
        as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, the depth limit is not positive, or there
            is no such backend.
        RuntimeError: in jvp, jacfwd, hessian or a second backward pass, unless the backend is ``"reference"``.
    """
    sizes = Sizes()
    sizes.check("actions", actions, "B n 3")
    sizes.check("values", values, "B n m")
    check_sizes(depth_limit=depth_limit)
    compute = choose_backend("superposition_stack", backend, BACKENDS, values.device)
    dtype = computation_dtype(values.dtype)
    with without_autocast(values.device):
        readings: Tensor = compute(actions.to(dtype), values.to(dtype), depth_limit=depth_limit)
    return readings.to(values.dtype)


def _example(random: RandomTensor, length: int) -> tuple[Tensor, ...]:
    return random(2, length, 3).softmax(-1), random(2, length, 5)


OP = Op("superposition_stack", superposition_stack, BACKENDS, _example)
