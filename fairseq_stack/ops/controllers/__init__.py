"""A controller with a stack or a queue, over all steps of a sequence at once (Hao et al., 2018).

``reference.py`` is the loop over the steps with the equations of Sections 2.2 and 2.3, for autograd; begin there.
``native.py`` runs all steps in one call on CPUs (``_native/src/controller*.h``, gradients written by hand), in float32
or float64. Step by step the same network is ``modules/neural_stack.py``. ``setup.py`` has the sizes and the names that
C counts in the same order.

An equation that changes, changes in ``reference.py``, ``controller.h`` with ``controller_cells.h`` (the cell) or
``controller_memory.h`` (the memory), and ``modules/neural_stack.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .._arguments import Sizes, without_autocast
from .._backends import Backend, by_name, choose_backend, native_obstacle
from .native import neural_stack_native
from .reference import neural_stack_reference
from .setup import GATES, MEMORIES, ControllerSetup

__all__ = ["ControllerSetup", "neural_stack"]

BACKENDS = by_name(
    Backend("native", neural_stack_native, native_obstacle),
    Backend("reference", neural_stack_reference),
)


def neural_stack(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    cell: Sequence[Tensor],
    setup: ControllerSetup,
    steps: int,
    *,
    backend: str = "auto",
) -> tuple[Tensor, Tensor]:
    """All steps of a neural stack (Section 2.2 of Hao et al., 2018), or of one with an input buffer (Section 2.3).

    With h_0 = c_0 = r_0 = 0, a step computes

        z_t = weight [x_t; r_{t-1}] + bias            for a linear controller, or else
        z_t = weight h_t + bias, where the cell computes h_t from [x_t; r_{t-1}] and h_{t-1},

    and the memory pops u_t, pushes v_t with the strength d_t, and is read: r_t. The rows of z_t are u_t, d_t, with a
    buffer i_t and o_t, v_t unless x_t is pushed, and y_t; all through a sigmoid except y_t.

    Args:
        x: (B, n, k). Without a buffer, x_t is the zero vector for t > n. With a buffer, x_t is read from it after
            i_{t-1} is popped, where i_0 = 0.
        weight: of the linear layer, (R, k + m), or (R, h) after a recurrent cell.
        bias: (R,).
        cell: ``weight_ih`` (P, k + m), ``weight_hh`` (P, h), ``bias_ih`` and ``bias_hh`` (P,) as in ``nn.RNNCell``,
            ``nn.LSTMCell`` or ``nn.GRUCell``; none for a linear controller.
        setup: what the controller and its memory are.
        steps: T >= n.
        backend: ``"auto"``, ``"native"`` (compiled, on the CPU, in float64 inside; a second derivative raises
            RuntimeError, and ``torch.func`` cannot transform it) or ``"reference"`` (the equations, for autograd to
            differentiate).

    Returns:
        The rows after the sigmoids, (B, T, R), and [x_{t+1}; r_t; h_t] from t = 0 on, (B, T + 1, k + m + h), where
        x_{T+1} = 0, in the dtype of the arguments, float32 or float64.

    Raises:
        ValueError: an argument's shape, dtype, layout or device is wrong, there are fewer steps than inputs, or the
            controller, the memory or the backend is unknown.
        RuntimeError: an argument has a forward-mode derivative, unless the backend is ``"reference"``.
    """
    _check(x, weight, bias, cell, setup)
    if steps < x.shape[1]:
        raise ValueError(f"steps: expected at least {x.shape[1]}, one for each input, got {steps}")
    compute = choose_backend("neural_stack", backend, BACKENDS, x.device)
    with without_autocast(x.device):
        computed, remembered = compute(x, weight, bias, cell, setup, steps)
    return computed, remembered


def _check(x: Tensor, weight: Tensor, bias: Tensor, cell: Sequence[Tensor], setup: ControllerSetup) -> None:
    for name, value, choices in (("controller", setup.controller, GATES), ("memory", setup.memory, MEMORIES)):
        if value not in choices:
            raise ValueError(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}")
    sizes = Sizes()
    sizes.check("x", x, "B n k")
    if x.dtype not in (torch.float32, torch.float64) or x.shape[1] == 0:
        raise ValueError(f"x: expected (B, n, k) of float32 or float64 with n > 0, got {tuple(x.shape)} {x.dtype}")
    features = x.shape[2] + setup.vector_size
    if len(cell) != (4 if GATES[setup.controller] else 0):
        raise ValueError(f"cell: expected the weights of the controller {setup.controller!r}, got {len(cell)} tensors")
    if cell:
        sizes.check("weight_hh", cell[1], "P h")
        gates = GATES[setup.controller] * sizes["h"]
        for name, tensor, shape in (
            ("weight_hh", cell[1], f"{gates} h"), ("weight_ih", cell[0], f"P {features}"),
            ("bias_ih", cell[2], "P"), ("bias_hh", cell[3], "P"),
        ):  # fmt: skip
            sizes.check(name, tensor, shape)
    sizes.check("weight", weight, "R h" if cell else f"R {features}")
    if setup.pushes_input and setup.vector_size != x.shape[2]:
        raise ValueError(f"vector_size: expected {x.shape[2]} like the input that is pushed, got {setup.vector_size}")
    if sizes["R"] < setup.num_sigmoids:
        raise ValueError(f"weight: expected at least {setup.num_sigmoids} rows, got {sizes['R']}")
    sizes.check("bias", bias, "R")
