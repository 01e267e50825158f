"""An LSTM that controls stacks, over all steps of a sequence at once (DuSell & Chiang 2020, 2022, 2023).

``reference.py`` is the loop over the steps with the equations, for autograd; begin there. ``native.py`` runs all steps
in one call on CPUs (``_native/src/recurrent*.h``, gradients written by hand) and leaves to the equations the sequences
that double precision cannot hold. ``stacks.py`` says which stacks there can be. Step by step the same network is
``modules/stack_lstm.py``.

An equation that changes, changes in ``reference.py``, in ``recurrent.h`` (the LSTM), ``recurrent_superposition.h``,
``controller_memory.h`` or ``recurrent_automaton.h`` (the stacks), and in the module.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from .._arguments import Sizes, without_autocast
from .._backends import Backend, by_name, choose_backend, native_obstacle
from .native import stack_lstm_native
from .reference import stack_lstm_reference
from .stacks import ControlledAutomaton, ControlledStack, ControlledStratification, ControlledSuperposition

__all__ = [
    "ControlledAutomaton",
    "ControlledStack",
    "ControlledStratification",
    "ControlledSuperposition",
    "stack_lstm",
]

BACKENDS = by_name(
    Backend("native", stack_lstm_native, native_obstacle),
    Backend("reference", stack_lstm_reference),
)


def stack_lstm(
    gates: Tensor,
    recurrent: Tensor,
    stacks: Sequence[ControlledStack],
    driving: Tensor,
    bias: Tensor,
    reading: Tensor,
    bottoms: Tensor,
    *,
    kept: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """The hidden states of an LSTM that drives stacks with them and reads the stacks at the next step.

    With the readings r_t of all stacks, concatenated, h_0 = c_0 = 0, and what x_t and the bias contribute to the gates,

        i_t, f_t, g_t, o_t = gates_t + recurrent [r_{t-1}; h_{t-1}]
        c_t = sigmoid(f_t) * c_{t-1} + sigmoid(i_t) * tanh(g_t) * kept_t
        h_t = sigmoid(o_t) * tanh(c_t)

    and each stack takes a step, driven by its own rows of driving h_t + bias, to its own part of r_t.

    Args:
        gates: (B, n, 4 H).
        recurrent: (4 H, R + H) for readings of R components in all.
        stacks: the stacks; none make a plain LSTM.
        driving: (P, H) for P projections in all, in the order of the stacks.
        bias: (P,).
        reading: r_0, (R,).
        bottoms: v_0 of all nondeterministic stacks, concatenated, (M,).
        kept: (B, n, H), factors of tanh(g_t); no gradient flows into them.
        backend: ``"auto"``, ``"native"`` (compiled, on the CPU; a second derivative raises RuntimeError, and
            ``torch.func`` cannot transform it) or ``"reference"`` (the equations, for autograd to differentiate).

    Returns:
        h_1..h_n, (B, n, H), in the dtype of the arguments, float32 or float64. In float32, ``"native"`` computes
        sequences in float64 for which a nondeterministic stack needs it, and all with a stratification stack.

    Raises:
        ValueError: an argument's shape, dtype, layout or device is wrong, or there is no such backend.
        RuntimeError: an argument has a forward-mode derivative, unless the backend is ``"reference"``.
    """
    sizes = Sizes()
    sizes.check("gates", gates, "B n G")
    if gates.dtype not in (torch.float32, torch.float64) or gates.shape[2] % 4:
        raise ValueError(f"gates: expected (B, n, 4 H) of float32 or float64, got {tuple(gates.shape)} {gates.dtype}")
    size, read = gates.shape[2] // 4, sum(stack.reading_size for stack in stacks)
    for stack in stacks:
        if stack.pushes == "hidden" and stack.size != size:
            raise ValueError(f"stacks: a stack that pushes h_t expects the size {size} of h_t, got {stack.size}")
    projected = sum(stack.num_projected for stack in stacks)
    sizes.check("recurrent", recurrent, f"G {read + size}")
    sizes.check("driving", driving, f"{projected} {size}")
    sizes.check("bias", bias, f"{projected}")
    sizes.check("reading", reading, f"{read}")
    sizes.check("bottoms", bottoms, f"{sum(stack.bottom_size for stack in stacks)}")
    if kept is not None:
        sizes.check("kept", kept, f"B n {size}")
    compute = choose_backend("stack_lstm", backend, BACKENDS, gates.device)
    with without_autocast(gates.device):
        outputs: Tensor = compute(gates, (recurrent, driving, bias, reading, bottoms), kept, stacks)
    return outputs
