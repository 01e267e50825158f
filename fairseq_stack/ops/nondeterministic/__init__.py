"""The nondeterministic stack: the differentiable vector pushdown automaton of DuSell and Chiang (2024).

Begin with ``reference.py``, Eqs. 21-29 in log space, and docs/algorithm.md, whose equations (a)-(m) everything else
computes, in real numbers with an exponent for each block.

Whole sequences, in the order of ``"auto"``:
    ``native.py``   CPUs, C in ``_native/src/nondeterministic*.h``; what double cannot hold, ``_steps.py``
    ``gpu.py``      GPUs, kernels in ``../_triton/``; what float64 cannot hold, ``_steps.py``
    ``pytorch.py``  all devices: ``_tiles.py`` (layout), ``_inner_weights.py`` (a)-(e), ``_gradient.py`` (g)-(m)
    ``window.py``   limited memory, by each of them

One step (``state.py``): the columns of a state are ``NativeColumns`` on CPUs, ``PanelColumns`` elsewhere (PyTorch or
Triton), and ``TrackedColumns``, in logarithms, under torch.func and for what float64 cannot hold. ``_columns.py`` is
one step in real numbers, ``_column_gradient.py`` its gradient, and ``_precision.py`` judges it.

Next to the readings: ``_log_partition.py``, ``posterior.py``, ``best_runs.py`` (``_excursions.py``,
``_derivations.py``; (n)-(p)) and ``contents.py``.

An equation that changes, changes in ``reference.py``, ``_inner_weights.py`` and ``_gradient.py``, ``_columns.py`` and
``_column_gradient.py``, ``_tracked_columns.py``, and in the C and Triton files of the same names, of which
``nondeterministic_equations.h`` has what sequences and steps share; the equation's number or letter stands next to
each place: ``git grep "Eq. 24"``. The start of runs (Eqs. 21 and 23) changes in ``reference.py``,
``_log_weights.py: first_configuration``, ``_tiles.py: in_tiles``, Triton's ``forward.py: near_cell``, and in C
``nd_start``, ``nd_start_column`` and ``nd_step_start``.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch import Tensor

from .._arguments import without_autocast
from .._backends import Backend, Op, RandomTensor, by_name, choose_backend, native_obstacle, triton_obstacle
from ._log_partition import log_partition
from ._log_weights import check_transitions
from ._steps import readings_by_steps
from .best_runs import best_runs
from .contents import StackEdge, StackNode, stack_contents
from .gpu import nondeterministic_stack_triton, windowed_readings_triton
from .native import nondeterministic_stack_native
from .posterior import Transitions, allowed_log_probability, transition_posterior
from .pytorch import nondeterministic_stack_pytorch
from .reference import nondeterministic_stack_reference
from .runs import Configuration, Item, Operation, Run, Step
from .state import NondeterministicStackState
from .window import windowed, windowed_readings_native

__all__ = [
    "Configuration",
    "Item",
    "NondeterministicStackState",
    "Operation",
    "Run",
    "StackEdge",
    "StackNode",
    "Step",
    "Transitions",
    "allowed_log_probability",
    "best_runs",
    "log_partition",
    "nondeterministic_stack",
    "stack_contents",
    "transition_posterior",
]

BACKENDS = by_name(
    Backend("native", nondeterministic_stack_native, native_obstacle),
    Backend("triton", nondeterministic_stack_triton, triton_obstacle),
    Backend("pytorch", nondeterministic_stack_pytorch),
    Backend("reference", nondeterministic_stack_reference),
)
WITH_LIMITED_MEMORY = by_name(
    Backend("native", partial(windowed, windowed_readings_native), native_obstacle),
    Backend("triton", partial(windowed, windowed_readings_triton), triton_obstacle),
    Backend("pytorch", partial(windowed, readings_by_steps)),
    Backend("reference", nondeterministic_stack_reference),
)


def nondeterministic_stack(
    push: Tensor,
    replace: Tensor,
    pop: Tensor,
    values: Tensor,
    bottom: Tensor,
    *,
    backend: str = "auto",
    return_weights: bool = False,
    return_log_partition: bool = False,
    window: int | None = None,
) -> Any:
    """Read the top of a nondeterministic stack after each of n steps (DuSell and Chiang, 2024, Appendix B).

    A pushdown automaton with Q states and S stack symbols, each of which lies on the stack with a vector of
    size m, tracks all its runs simultaneously. The reading ``r_t[r, y]`` is the sum, over the runs of t steps that
    end in state r with symbol y on top, of the run's weight times the vector on top, divided by the weight of all
    runs of t steps:

        r_t[r, y] = eta_t[r, y] / sum_{r', y'} alpha[t][r', y']    (Eq. 29)

    Runs start in state 0 with symbol 0 and v_0 on the stack, which are never popped. A log weight of -inf
    forbids its transition; where no run is left, the reading is 0. Readings and gradients are exact, up to
    rounding, for all finite inputs. Sequences in which log weights of one step are more than 230 apart may take
    much longer.

    All backends support ``torch.func``: grad, vjp, jacrev and vmap, in any nesting. Forward-mode and second
    derivatives need ``backend="reference"``.

    Args:
        push: log Delta_t[q, x -> r, xy] at index [b, t - 1, q, x, r, y], (B, n, Q, S, Q, S): in state q with
            x on top, go to state r and push y with v_t.
        replace: log Delta_t[q, x -> r, y], (B, n, Q, S, Q, S): replace x by y and keep its vector.
        pop: log Delta_t[q, x -> r, eps] at index [b, t - 1, q, x, r], (B, n, Q, S, Q).
        values: v_1..v_n, (B, n, m).
        bottom: v_0, (m,) or (B, m).
        backend: ``"auto"`` (the fastest for the device), ``"native"`` (compiled, on the CPU), ``"triton"``
            (for GPUs), ``"pytorch"`` (vectorised) or ``"reference"`` (the equations, for autograd to differentiate).
            Only the last has second and forward-mode derivatives; the others raise RuntimeError.
        return_weights: also return the weights W.
        return_log_partition: also return log Z, at the cost of another call, or with a window that of n steps of a
            ``NondeterministicStackState``.
        window: D for limited memory: after t steps, the stack remembers only what was pushed in step t - D + 1 or
            later, where v_0 counts as pushed in step 0 (gamma[i -> t] = 0 for t - i > D; DuSell and Chiang, 2022).
            Time and memory are then in proportion to n. From n + 1 on, nothing is forgotten.

    Returns:
        The readings r_1..r_n, (B, n, Q, S, m), in the dtype of the arguments. They are computed in float64, whatever
        autocast says; for narrower arguments ``"native"`` takes float32 where that is as good. With
        ``return_weights``, also W (B, n, n + 1, Q, S), which can be differentiated too: W[b, t - 1, i] is the share of
        v_i in r_t, so that the readings are einsum("btirs,bim->btrsm", W, V) with V = [bottom; values], and
        W[b, t - 1] sums to 1.
        With ``return_log_partition``, last log Z (B, n), which can be differentiated too: log Z[b, t - 1] is the
        logarithm of ``sum_{r, y} alpha[t][r, y]``, the weight of all runs of t steps, and -inf if there is none. The
        derivative of log Z[b, t - 1] with respect to a log weight is the posterior probability of its transition,
        given the first t steps: see ``transition_posterior``.
        If a log weight of step t is NaN or inf, readings, W and log Z are NaN from step t on. If a component of v_t is
        not finite, that component of the readings is NaN from step t on. Earlier readings and weights, and gradients
        through them, are the same as with any other numbers in its place.

    Raises:
        ValueError: if an argument's shape, dtype, layout or device is wrong, the window is not positive, or there is no
            such backend.
        RuntimeError: in jvp, jacfwd, hessian or a second backward pass, unless the backend is ``"reference"``.
    """
    sizes = check_transitions(push, replace, pop, window)
    sizes.check("values", values, "B n m")
    sizes.check("bottom", bottom, "m" if isinstance(bottom, Tensor) and bottom.dim() == 1 else "B m")
    forgets = window is not None and window <= push.shape[1]
    backends = WITH_LIMITED_MEMORY if forgets else BACKENDS
    compute = choose_backend("nondeterministic_stack", backend, backends, push.device)
    options = {"window": window} if forgets else {}
    with without_autocast(push.device):
        readings, weights = compute(push, replace, pop, values, bottom, return_weights=return_weights, **options)
        log_totals = log_partition(push, replace, pop, backend=backend, **options) if return_log_partition else None
    returned = tuple(x for x in (readings, weights, log_totals) if x is not None)
    return returned if len(returned) > 1 else readings


def _example(random: RandomTensor, length: int) -> tuple[Tensor, ...]:
    push, replace = random(2, length, 2, 3, 2, 3), random(2, length, 2, 3, 2, 3)
    return push, replace, random(2, length, 2, 3, 2), random(2, length, 5), random(5)


OP = Op("nondeterministic_stack", nondeterministic_stack, BACKENDS, _example)
